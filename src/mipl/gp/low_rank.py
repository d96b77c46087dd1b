"""The low-rank engine: Gaussian processes on Nyström features, whose cost grows with n instead of its square."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.errors import ParameterError
from mipl.gp.distances import distances
from mipl.gp.exact import Conditioned
from mipl.gp.kernels import is_scaled_matern
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.low_rank_sums import CHUNK_ROWS, NoiseLevels, Present, Solved, gradient_sums, moment_sums
from mipl.gp.matern import matern_and_derivative
from mipl.gp.parameters import ProcessParameters
from mipl.gp.posterior import Posterior, PosteriorState

__all__ = ["LowRankEngine", "LowRankEvidence", "landmark_distances"]

# Added to the diagonal of k(Z, Z), relative to the outputscale: it bounds by 100 what the features amplify, so that
# they can be computed in single precision.
JITTER = 1e-4
# Relative to the outputscale, on the diagonal of a semidefinite matrix before its Cholesky factor is taken.
ROOT_JITTER = 1e-9


#: Where the rows are: sums what a `RowSum` returns for every block of them, given its parameters by name.
Total = Callable[..., tuple[Tensor, ...]]


class LowRankEvidence(NamedTuple):
    """One evaluation of the objective.

    Attributes
    ----------
    loss : float
        Mean negative log evidence per instance and class.
    at : Present
        The parameters.
    coefficients : (M, C) tensor
        Posterior means of the features' weights, see `mipl.gp.low_rank_sums.posterior_means`.
    """

    loss: float
    at: Present
    coefficients: Tensor


class _Systems(NamedTuple):
    """All that evidence and posterior need of the present parameters; vectors of classes are columns."""

    at: Present
    total: Tensor  # (M, M), the Gram matrix of all rows
    levels: Tensor  # (levels, M, M), of the rows of each level
    inverses: Tensor  # M_c^-1 (C, M, M)
    logdet: float  # the sum of log |M_c|
    coefficients: Tensor  # (M, C), posterior means of the features' weights
    landmark_derivative: Tensor  # (M, M), of k(Z, Z)


def landmark_distances(X: Tensor, landmarks: Tensor) -> Tensor:
    """Distances (n, M) of rows (n, d) to landmarks (M, d)."""
    centre = landmarks.mean(0)
    near = landmarks - centre
    return torch.cat([distances(part - centre, near).to(landmarks.dtype) for part in X.split(CHUNK_ROWS)])


class LowRankEngine(ProcessParameters):
    r"""Gaussian processes whose kernel is :math:`s\, \phi(x)^\top \phi(x')`: features from M landmarks Z.

    With the Matérn kernel k of unit outputscale, :math:`k(Z, Z) + 10^{-4} I = L L^\top` and
    :math:`\Phi = k(X, Z) L^{-\top}`, class c has :math:`A_c = s \Phi \Phi^\top + D_c` where the exact engines have
    :math:`K + D_c`; the objective is theirs (`mipl.gp.exact`), and everything is exact for this kernel. With
    :math:`W_c = D_c^{-1}` and :math:`M_c = I / s + \Phi^\top W_c \Phi`,

    .. math:: |A_c| = s^M |M_c| |D_c|, \qquad A_c^{-1} = W_c - W_c \Phi M_c^{-1} \Phi^\top W_c .

    All rows whose candidates lack c share one noise, so C Gram matrices cost little more than one
    (`mipl.gp.low_rank_sums`): :math:`\Phi^\top W_c \Phi` is the usual weight times the Gram matrix of all rows, plus
    a correction from rows with another noise, and rows with one candidate set form their Gram matrix once for all
    classes. The gradient goes the same way back: with :math:`a_c = A_c^{-1} r_c`,

    .. math:: H = \sum_c (A_c^{-1} - a_c a_c^\top) \Phi
                = \sum_c W_c \Phi M_c^{-1} / s - a_c (\Phi^\top a_c)^\top

    takes one product of each row with a matrix that its candidate set shares, and the derivative by the lengthscale is
    :math:`s\, (2 \langle H L^{-1}, \partial k(X, Z) \rangle - \langle L^{-\top} \Phi^\top H L^{-1},
    \partial k(Z, Z) \rangle)`.

    Both are sums over rows, so the rows may lie in blocks anywhere (`mipl.gp.low_rank_sums`): the engine is given a
    function that sums over all blocks, and asks it twice per evaluation. The lengthscale changes the features, which
    are computed anew each time from distances that are kept. An evaluation costs about 6 n M^2 operations, beside
    C M^3 for the classes.

    Posterior variances have the prior variance that the features lack added, so far instances keep theirs.

    An instance of weight :math:`w_i` counts as that many. Its row of :math:`\Phi` and its residual are multiplied by
    :math:`\sqrt{w_i}`, which is the same as dividing its noise by :math:`w_i` (`mipl.gp.exact`) but leaves noises
    that are shared as they are, and takes the terms :math:`\log w_i` out of the evidence.

    Parameters
    ----------
    X : (k, d) tensor
        All training instances, or a sample of them: what k-means sees.
    kernel : gpytorch.kernels.Kernel
        A scaled isotropic Matérn kernel (`mipl.gp.kernels.is_scaled_matern`). Becomes part of the engine.
    n_classes : int
        C.
    n_landmarks : int
        M, at most; k-means finds the landmarks.
    extra_noise : float
        Start value of the learned noise of each class.
    seed : int
        Seed of the landmarks.
    weights : (k,) tensor, default=None
        How often each row of `X` counts; None for once.

    Attributes
    ----------
    landmarks : (M, d) tensor
        On the device and in the precision of `X`, as are features and products with them; (M, M) matrices are in double
        precision.
    """

    def __init__(
        self,
        X: Tensor,
        kernel: Kernel,
        n_classes: int,
        *,
        n_landmarks: int,
        extra_noise: float,
        seed: int,
        weights: Tensor | None = None,
    ) -> None:
        if not is_scaled_matern(kernel):
            raise ParameterError('engine="low-rank" needs the default kernel; use engine="exact" with your own')
        super().__init__(kernel, n_classes, extra_noise=extra_noise, device=X.device, dtype=torch.float64)
        generator = torch.Generator().manual_seed(seed)
        self.landmarks, _ = kmeans_landmarks(X, n_landmarks, generator, weights=weights)
        near = self.landmarks - self.landmarks.mean(0)
        self._landmark_distances = distances(near, near).fill_diagonal_(0)

    def evidence(self, total: Total, known: NoiseLevels) -> LowRankEvidence:
        """Evaluate the objective, and set `grad` of every parameter.

        Parameters
        ----------
        total : callable
            Sums a function of `mipl.gp.low_rank_sums` over all blocks of rows.
        known : NoiseLevels
            How the noises of the rows repeat.
        """
        self.zero_grad()
        with torch.no_grad():
            system = self._systems(total, known)
            at = system.at
            sent = Solved(system.coefficients, system.inverses.to(self.landmarks.dtype))
            value, by_cross, by_noise, by_mean, varying = total(gradient_sums, at=at, solved=sent)
            by_logs = self._by_logs(system, by_cross)
            by_noise = by_noise - self._explained(system, varying)
            size = len(self.landmarks) * len(self.mean)
            objective = value[0].item() + system.logdet + size * math.log(at.outputscale)
            factor = 1 / (2 * value[1].item() * len(self.mean))
        logs = torch.stack([self.kernel.base_kernel.lengthscale.log().sum(), self.kernel.outputscale.log().sum()])
        (factor * (by_logs @ logs + by_noise @ self.extra_noise)).backward()
        self.mean.grad = -2 * factor * by_mean
        return LowRankEvidence(factor * objective + math.log(2 * math.pi) / 2, at, system.coefficients)

    @torch.no_grad()
    def condition(self, total: Total, known: NoiseLevels, noise: NDArray[np.float64] | None = None) -> Conditioned:
        """The posterior at the present parameters.

        Its state is that of an exact posterior with the landmarks as instances.

        Parameters
        ----------
        total, known
            As in `evidence`.
        noise : (n, C) array, default=None
            The noise variances of all rows, the learned part included, for the state; no moment needs them.
        """
        system = self._systems(total, known)
        s = system.at.outputscale
        upper = system.at.factor.T
        identity = torch.eye(len(upper), dtype=torch.float64, device=upper.device)
        explained = torch.linalg.cholesky((1 + ROOT_JITTER) * s * identity - system.inverses)

        def array(values: Tensor) -> NDArray[np.floating]:
            return values.to(self.landmarks.dtype).cpu().numpy()

        state = PosteriorState(
            instances=array(self.landmarks),
            mean=self.mean.cpu().numpy().copy(),
            solution=array(torch.linalg.solve_triangular(upper, system.coefficients / s, upper=True)),
            noise=noise,
            inverse_root=array(torch.linalg.solve_triangular(upper, explained / s, upper=True)),
            prior_root=array(torch.linalg.solve_triangular(upper, identity / math.sqrt(s), upper=True)),
            kernel_state={name: value.cpu().numpy().copy() for name, value in self.kernel.state_dict().items()},
        )
        return Conditioned(Posterior(self.kernel, state, device=upper.device), 0, 0.0)

    # ---------------------------------------------------------------- systems and gradient

    def _systems(self, total: Total, known: NoiseLevels) -> _Systems:
        base, extra = self.kernel.base_kernel, self.extra_noise
        lengthscale = base.lengthscale.item()
        K, landmark_derivative = matern_and_derivative(self._landmark_distances, base.nu, lengthscale, 1.0)
        K.diagonal().add_(JITTER)
        at = Present(
            base.nu,
            lengthscale,
            self.kernel.outputscale.item(),
            torch.linalg.cholesky(K),
            self.mean.detach().clone(),
            extra.detach(),
            1 / (torch.tensor(known.usual, device=extra.device) + extra.detach()),
            [(c, 1 / (value + extra[c].item())) for c, value in known.levels],
            known.varying,
        )
        gram, levels, varying, right = total(moment_sums, at=at)
        moments = at.usual[:, None, None] * gram
        for (c, weight), part in zip(at.levels, levels, strict=True):
            moments[c].add_(part, alpha=weight - at.usual[c].item())
        for c, part in zip(at.varying, varying, strict=True):
            moments[c].add_(part)
        moments.diagonal(dim1=1, dim2=2).add_(1 / at.outputscale)
        factors = torch.linalg.cholesky(moments)
        coefficients = torch.cholesky_solve(right.T[:, :, None], factors)[:, :, 0].T
        logdet = 2 * factors.diagonal(dim1=1, dim2=2).log().sum().item()
        inverses = torch.cholesky_inverse(factors)
        return _Systems(at, gram, levels, inverses, logdet, coefficients, landmark_derivative)

    def _by_logs(self, system: _Systems, by_cross: Tensor) -> Tensor:
        """Derivatives (2,) of the objective, without its factor, by the logarithms of lengthscale and outputscale."""
        s, L, alpha = system.at.outputscale, system.at.factor, system.coefficients
        # Phi' H, by M_c - I / s = Phi' W_c Phi and Phi' a_c = alpha_c / s.
        inner = -system.inverses.sum(0) / s**2 - alpha @ alpha.T / s**2
        inner.diagonal().add_(len(system.inverses) / s)
        whitened = torch.linalg.solve_triangular(L.T, inner, upper=True)
        whitened = torch.linalg.solve_triangular(L, whitened, upper=False, left=False)
        by_lengthscale = s * (2 * by_cross - (whitened * system.landmark_derivative).sum())
        return torch.stack([by_lengthscale, s * inner.trace()])

    def _explained(self, system: _Systems, varying: Tensor) -> Tensor:
        """The traces (C,) of W_c Phi M_c^-1 Phi' W_c, given the part of varying noises in them."""
        at = system.at
        out = at.usual.square() * (system.inverses * system.total).sum((1, 2))
        for (c, weight), gram in zip(at.levels, system.levels, strict=True):
            out[c] += (weight**2 - at.usual[c] ** 2) * (system.inverses[c] * gram).sum()
        return out.index_add(0, torch.tensor(at.varying, dtype=torch.int64, device=out.device), varying)
