"""What exact engines share: the objective of C Gaussian processes with one kernel, its parameters and its gradient."""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.kernels import kernel_matrix
from mipl.gp.landmark_variances import LandmarkFeatures, with_landmark_variances
from mipl.gp.parameters import ProcessParameters
from mipl.gp.posterior import Posterior, PosteriorState
from mipl.gp.repeats import Repeats, expand, merge
from mipl.gp.solvers import Preconditioner, weighted_grams

__all__ = ["Conditioned", "Evaluation", "Evidence", "ExactEngine", "Solve"]


class Evidence(NamedTuple):
    """One evaluation of the objective.

    Attributes
    ----------
    loss : float
        Mean negative log evidence per instance and class.
    posterior_mean : (n, C) array
        Posterior means at the training instances.
    iterations : int
        Iterations of the solver, 0 for a direct one.
    residual : float
        Relative residual at which the solver stopped, 0 for a direct one.
    """

    loss: float
    posterior_mean: NDArray[np.float64]
    iterations: int
    residual: float


class Conditioned(NamedTuple):
    """A posterior, and how the solve behind it went (as in `Evidence`)."""

    posterior: Posterior
    iterations: int
    residual: float


class Evaluation(NamedTuple):
    """The objective without factor and constant: its value, the solutions, the value's derivatives, how it went."""

    value: float
    solution: Tensor  # (C, n)
    by_kernel: Tensor  # (p,), by the kernel's raw parameters
    by_noise: Tensor  # (C, n)
    iterations: int
    residual: float


class Solve(NamedTuple):
    """Solutions of all systems, and how the solver went."""

    solution: Tensor  # (C, n)
    iterations: int
    residual: float


class ExactEngine(ProcessParameters, metaclass=ABCMeta):
    r"""C independent Gaussian processes with one kernel, on n instances; base of the two exact engines.

    Class c has targets :math:`y_c`, a constant mean :math:`\mu_c` and noise :math:`D_c = \mathrm{diag}(\sigma_c^2) +
    \tau_c I`, with given variances :math:`\sigma_c^2` and a learned :math:`\tau_c`. With :math:`A_c = K + D_c`,
    :math:`r_c = y_c - \mu_c` and :math:`a_c = A_c^{-1} r_c`, the objective is the mean negative log evidence

    .. math:: L = \frac{1}{2nC} \sum_c r_c^\top a_c + \log |A_c| + n \log 2\pi .

    Its gradient needs, for all C systems together, one matrix :math:`G = \partial L / \partial K`,

    .. math:: 2nC\, G = \sum_c A_c^{-1} - a_c a_c^\top .

    The learned parameters are those of the kernel, :math:`\mu_c`, and :math:`\tau_c` on the scale of a softplus. An
    engine implements `_evaluate`, `_solve` and `_inverse_root`.

    An instance of weight :math:`w_i` counts as :math:`w_i` instances at one place with one target. As

    .. math:: N(y; f, d)^w = N(y; f, d / w)\, (2 \pi d)^{(1 - w)/2}\, w^{-1/2},

    these have the posterior of one instance with the noise d / w, and with :math:`A_c = K + D_c W^{-1}`,
    :math:`W = \mathrm{diag}(w)`, the evidence of all copies is

    .. math:: L = \frac{1}{2 C \sum_i w_i} \sum_c \Big[ r_c^\top a_c + \log |A_c| + \sum_i (w_i - 1) \log d_{ci}
              + \log w_i + w_i \log 2\pi \Big] .

    Parameters
    ----------
    X : (n, d) array
        The training instances.
    kernel : gpytorch.kernels.Kernel
        Becomes part of the engine, which learns its parameters.
    n_classes : int
        C.
    extra_noise : float
        Start value of :math:`\tau_c`.
    memory_budget : float
        Bytes for halves of (n, n) matrices: distances, K and its derivative are kept if all fit, else K alone, else
        tiles are computed when they are needed.
    device : torch.device
        Where the engine computes.
    dtype : torch.dtype
        Precision of kernel matrices and solutions.
    weights : (n,) array, default=None
        How often each instance counts, :math:`w_i > 0`; None for once.
    repeats : Repeats or None, default=None
        Which of n training instances are equal (`mipl.gp.repeats`): `X` then has the distinct ones only, while targets
        and noises have a row for each of the n.
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        kernel: Kernel,
        n_classes: int,
        *,
        extra_noise: float,
        memory_budget: float,
        device: torch.device,
        dtype: torch.dtype,
        weights: NDArray[np.float64] | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        super().__init__(kernel, n_classes, extra_noise=extra_noise, device=device, dtype=dtype, weights=weights)
        self.X, self.device, self.dtype, self.repeats = X, device, dtype, repeats
        self.K = kernel_matrix(self.kernel, torch.tensor(X, dtype=dtype, device=device), memory_budget)

    # ---------------------------------------------------------------- what an engine implements

    @abstractmethod
    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> Evaluation:
        """Evaluate the objective at residuals r (C, n) and total noises (C, n)."""

    @abstractmethod
    def _solve(self, residual: Tensor, noise: Tensor, preconditioner: Preconditioner | None) -> Solve:
        """Solutions of A_c a_c = r_c that are accurate enough for prediction; a preconditioner may help."""

    @abstractmethod
    def _inverse_root(self, noise: Tensor) -> NDArray[np.float32] | None:
        """Roots (C, n, k) of A_c^-1 for posterior variances; None where these are computed exactly."""

    # ---------------------------------------------------------------- what estimators ask, see mipl.gp.engine

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective at targets and noise variances (n, C), and set `grad` of every parameter."""
        self.zero_grad()
        self.K.update()
        residual, total_noise = self._systems(targets, noise)
        factor = 1 / (2 * self.n_values(targets))
        with torch.no_grad():
            out = self._evaluate_rows(residual, total_noise, warm=warm)
        sizes = [p.numel() for p in self.K.parameters]
        for parameter, gradient in zip(self.K.parameters, out.by_kernel.split(sizes), strict=True):
            parameter.grad = (factor * gradient).view_as(parameter).to(parameter)
        loss = factor * out.value + math.log(2 * math.pi) / 2
        self.mean.grad = -2 * factor * out.solution.sum(1).double()
        by_noise = out.by_noise.sum(1).double()
        if self.weights is not None:
            # Noises are divided by the weights; what the copies add to the evidence has the undivided ones.
            by_noise = (out.by_noise.double() / self.weights).sum(1)
            copies_loss, copies_by_noise = self.copies(noise)
            loss += factor * (copies_loss + len(self.mean) * self.weights.log().sum().item())
            by_noise += copies_by_noise
        (factor * by_noise @ self.extra_noise).backward()
        posterior_mean = targets - (total_noise * out.solution).T.double().cpu().numpy()
        return Evidence(loss, posterior_mean, out.iterations, out.residual)

    @torch.no_grad()
    def condition(
        self,
        targets: NDArray[np.float64],
        noise: NDArray[np.float64],
        *,
        landmarks: LandmarkFeatures | None = None,
    ) -> Conditioned:
        """The posterior given targets and noise variances (n, C), at the present parameters.

        With `landmarks` of the engine's instances the variances come from these; their features help the solver, too.
        """
        self.K.update(derivatives=False)
        residual, total_noise = self._systems(targets, noise)
        kept_noise = self.conditioned_noise(noise)
        if self.repeats is not None:
            merged = merge(self.repeats, residual, total_noise)
            residual, total_noise = merged.residual.to(self.dtype), merged.noise.to(self.dtype)
            kept_noise = merged.noise.T.cpu().numpy()
        preconditioner = None
        if landmarks is not None:
            grams = weighted_grams(landmarks.features, 1 / total_noise.double())
            preconditioner = Preconditioner(landmarks.features.to(self.dtype), total_noise, grams)
        solution, iterations, cg_residual = self._solve(residual, total_noise, preconditioner)
        state = PosteriorState(
            instances=self.X,
            mean=self.mean.cpu().numpy().copy(),
            solution=solution.T.contiguous().cpu().numpy(),
            noise=kept_noise,
            inverse_root=self._inverse_root(total_noise) if landmarks is None else None,
            prior_root=None,
            kernel_state={name: value.cpu().numpy().copy() for name, value in self.kernel.state_dict().items()},
        )
        posterior = Posterior(self.kernel, state, device=self.device)
        if landmarks is not None:
            self.K.release()
            posterior = with_landmark_variances(posterior, landmarks, grams)
        return Conditioned(posterior, iterations, cg_residual)

    def _evaluate_rows(self, residual: Tensor, noise: Tensor, *, warm: bool) -> Evaluation:
        """Evaluate the objective at residuals and total noises (C, n) of rows among which some may be equal."""
        if self.repeats is None:
            return self._evaluate(residual, noise, warm=warm)
        merged = merge(self.repeats, residual, noise)
        out = self._evaluate(merged.residual.to(self.dtype), merged.noise.to(self.dtype), warm=warm)
        solution, by_noise = expand(
            self.repeats, merged, residual.double(), noise.double(), out.solution.double(), out.by_noise.double()
        )
        return out._replace(value=out.value + merged.constant, solution=solution, by_noise=by_noise)

    def _systems(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """Residuals r (C, n) and total noises (C, n), divided by the weights, in the working precision."""
        y, variances = (torch.tensor(a.T, device=self.device) for a in (targets, noise))
        with torch.no_grad():
            residual, total = y - self.mean[:, None], variances + self.extra_noise[:, None]
            if self.weights is not None:
                total = total / self.weights
        return residual.to(self.dtype).contiguous(), total.to(self.dtype).contiguous()
