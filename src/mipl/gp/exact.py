"""The exact engines: C Gaussian processes with one kernel, by Cholesky factors or by conjugate gradients."""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.kernels import kernel_matrix
from mipl.gp.parameters import ProcessParameters, joined
from mipl.gp.posterior import Posterior, PosteriorState
from mipl.gp.repeats import Repeats, expand, find_repeats, merge
from mipl.gp.solvers import Preconditioner, lanczos, pivoted_cholesky, solve, tridiagonal_logdet

__all__ = ["CholeskyEngine", "Conditioned", "ConjugateGradientEngine", "Evidence", "ExactEngine", "exact_engine"]

# A chain of warm evaluations ends, and the next one starts afresh, after this many steps, or when one of them needed
# more than so many iterations (its preconditioner has grown old).
WARM_STEPS = 100
WARM_ITERATIONS = 8
# In a chain, the preconditioner of conjugate gradients is computed anew after so many evaluations. That of the probes
# stays: it is part of the objective.
RENEWED = 3
# An extrapolation goes no farther than so many times the last step.
FARTHEST = 3.0
# Prediction uses the solutions themselves, while training only needs a descent direction: the last solve goes further.
FINAL_TOLERANCE = 0.01
# Distinct instances per rank of a preconditioner, and the bounds of its rank: a product with K grows with n^2, what it
# takes to have and to use a factor with n, so that many instances are worth a factor that saves more products.
ROWS_PER_RANK = 80
RANKS = 100, 300


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


class _Evaluation(NamedTuple):
    """The objective without factor and constant: its value, the solutions, the value's derivatives, how it went."""

    value: float
    solution: Tensor  # (C, n)
    by_kernel: Tensor  # (p,), by the kernel's raw parameters
    by_noise: Tensor  # (C, n)
    iterations: int
    residual: float


class _Solved(NamedTuple):
    """Solutions of all systems, roots (C, n, k) of their inverses or None, and how the solver went."""

    solution: Tensor  # (C, n)
    inverse_root: NDArray[np.float32] | None
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

    The learned parameters are those of the kernel, :math:`\mu_c`, and :math:`\tau_c` on the scale of a softplus.

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
    dtype : torch.dtype, default=torch.float64
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
        dtype: torch.dtype = torch.float64,
        weights: NDArray[np.float64] | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        super().__init__(kernel, n_classes, extra_noise=extra_noise, device=device, dtype=dtype)
        self.X, self.device, self.dtype, self.repeats = X, device, dtype, repeats
        self.weights = None if weights is None else torch.tensor(weights, dtype=torch.float64, device=device)
        self.K = kernel_matrix(self.kernel, torch.tensor(X, dtype=dtype, device=device), memory_budget)

    @abstractmethod
    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> _Evaluation:
        """Evaluate the objective at residuals r (C, n) and total noises (C, n)."""

    @abstractmethod
    def _solve(self, residual: Tensor, noise: Tensor) -> _Solved:
        """Solutions of A_c a_c = r_c that are accurate enough for prediction, and roots for posterior variances."""

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective at targets and noise variances (n, C), and set `grad` of every parameter.

        With `warm` the engine may start from the evaluation before, which pays where parameters, targets and noises
        have moved little since.
        """
        self.zero_grad()
        self.K.update()
        residual, total_noise = self._systems(targets, noise)
        C = len(self.mean)
        factor = 1 / (2 * (targets.size if self.weights is None else self.weights.sum().item() * C))
        with torch.no_grad():
            out = self._evaluate_rows(residual, total_noise, warm=warm)
        sizes = [p.numel() for p in self.K.parameters]
        for parameter, gradient in zip(self.K.parameters, out.by_kernel.split(sizes), strict=True):
            parameter.grad = (factor * gradient).view_as(parameter).to(parameter)
        self.mean.grad = -2 * factor * out.solution.sum(1).double()
        value, by_noise = out.value, out.by_noise.double().sum(1)
        if self.weights is not None:
            # Noises are divided by the weights; what the copies add to the evidence has the undivided ones.
            extra, undivided = self.weights - 1, total_noise * self.weights
            value += (extra * undivided.log()).sum().item() + C * self.weights.log().sum().item()
            by_noise = (out.by_noise.double() / self.weights + extra / undivided).sum(1)
        (factor * by_noise @ self.extra_noise).backward()
        posterior_mean = targets - (total_noise * out.solution).T.double().cpu().numpy()
        return Evidence(factor * value + math.log(2 * math.pi) / 2, posterior_mean, out.iterations, out.residual)

    @torch.no_grad()
    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior given targets and noise variances (n, C); it stays what it is when the parameters change."""
        self.K.update(derivatives=False)
        residual, total_noise = self._systems(targets, noise)
        if self.repeats is not None:
            residual, total_noise, _ = merge(self.repeats, residual, total_noise)
        out = self._solve(residual.to(self.dtype), total_noise.to(self.dtype))
        state = PosteriorState(
            instances=self.X,
            mean=self.mean.cpu().numpy().copy(),
            solution=out.solution.T.contiguous().cpu().numpy(),
            noise=total_noise.T.cpu().numpy(),
            inverse_root=out.inverse_root,
            prior_root=None,
            kernel_state={name: value.cpu().numpy().copy() for name, value in self.kernel.state_dict().items()},
        )
        return Conditioned(Posterior(self.kernel, state, device=self.device), out.iterations, out.residual)

    def _evaluate_rows(self, residual: Tensor, noise: Tensor, *, warm: bool) -> _Evaluation:
        """Evaluate the objective at residuals and total noises (C, n) of rows among which some may be equal."""
        if self.repeats is None:
            return self._evaluate(residual.to(self.dtype), noise.to(self.dtype), warm=warm)
        merged = merge(self.repeats, residual, noise)
        out = self._evaluate(merged.residual.to(self.dtype), merged.noise.to(self.dtype), warm=warm)
        solution, by_noise = expand(self.repeats, merged, residual, noise, out.solution.double(), out.by_noise.double())
        return out._replace(value=out.value + merged.constant, solution=solution, by_noise=by_noise)

    @torch.no_grad()
    def _systems(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """Residuals r (C, n) and total noises (C, n), divided by the weights, in double precision."""
        y, variances = (torch.tensor(a.T, dtype=torch.float64, device=self.device) for a in (targets, noise))
        total = variances + self.extra_noise[:, None]
        return y - self.mean[:, None], total if self.weights is None else total / self.weights


class CholeskyEngine(ExactEngine):
    """Evidence and posterior by Cholesky factors, for few instances: n^3 / 3 operations per class, in double precision.

    Its posterior computes variances exactly, too.
    """

    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> _Evaluation:
        K = self.K.dense()
        weight, value = torch.zeros_like(K), 0.0
        solution, by_noise = torch.empty_like(residual), torch.empty_like(noise)
        for c in range(len(noise)):
            factor = torch.linalg.cholesky(K + noise[c].diag())
            solution[c] = torch.cholesky_solve(residual[c, :, None], factor)[:, 0]
            value += (residual[c] @ solution[c] + 2 * factor.diagonal().log().sum()).item()
            by_c = torch.cholesky_inverse(factor).sub_(torch.outer(solution[c], solution[c]))
            by_noise[c] = by_c.diagonal()
            weight += by_c
        return _Evaluation(value, solution, self.K.gradient(weight), by_noise, 0, 0.0)

    def _solve(self, residual: Tensor, noise: Tensor) -> _Solved:
        K = self.K.dense()
        factors = (torch.linalg.cholesky(K + diagonal.diag()) for diagonal in noise)
        columns = [torch.cholesky_solve(r[:, None], f)[:, 0] for r, f in zip(residual, factors, strict=True)]
        return _Solved(torch.stack(columns), None, 0, 0.0)


class _Chain(NamedTuple):
    """An evaluation from which a warm one goes on; derivatives are those of the sum of log determinants."""

    preconditioner: Preconditioner  # of conjugate gradients
    probes: Tensor  # (C, n, t)
    whitened: Tensor  # (C, n, t), the inverse of the first preconditioner, their covariance, times the probes
    x: Tensor  # (C, n, t + 1), solutions for probes and residuals
    change: Tensor  # of x in the last step
    position: Tensor  # of the parameters that the systems depend on
    step: Tensor  # to this position; as far as the next one goes in its direction, the change is extrapolated
    kernel_parameters: Tensor  # (p,)
    noise: Tensor  # (C, n)
    logdet: float
    by_kernel: Tensor  # (p,)
    by_noise: Tensor  # (C, n)
    steps: int


class ConjugateGradientEngine(ExactEngine):
    r"""Evidence and posterior by preconditioned conjugate gradients, without ever factoring an (n, n) matrix.

    The trace in the gradient of `ExactEngine` is estimated with t probes :math:`z_{cp}` per class, of covariance
    :math:`P_c`, the preconditioner:

    .. math:: 2nC\, G \approx
              \sum_c \frac{1}{t} \sum_{p=1}^t (A_c^{-1} z_{cp}) (P_c^{-1} z_{cp})^\top - a_c a_c^\top .

    G is never formed: its vectors meet :math:`\partial K` in one more product of the kind that CG takes. The probes
    come from normal draws that are fixed for the lifetime of the engine, so the objective is a deterministic function
    of the parameters.

    A *warm* evaluation goes on from the one before: same probes, solutions refined to `cg_tol` from the last ones,
    extrapolated along their last change, and the log determinants carried along by the trapezoid rule on their own
    gradient, since a refined solution has no Lanczos matrices. While an optimizer takes small steps this needs a few
    products with K where a fresh evaluation needs ten to thirty.

    Parameters
    ----------
    *args, **kwargs
        See `ExactEngine`.
    preconditioner_size : int
        Rank of the pivoted Cholesky factor that all classes share.
    n_probes : int
        Probes t per class.
    cg_tol : float
        Bound of the relative residual in training, averaged over classes and right-hand sides; `condition` goes a
        hundred times further.
    max_cg_iter : int
        Bound of the iterations of one solve.
    variance_rank : int or None
        Lanczos steps for the roots of the inverses that posterior variances use; with None the posterior computes
        variances exactly.
    seed : int
        Seed of the probes.
    """

    def __init__(
        self,
        *args: Any,
        preconditioner_size: int,
        n_probes: int,
        cg_tol: float,
        max_cg_iter: int,
        variance_rank: int | None,
        seed: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"dtype": torch.float32} | kwargs)
        self.preconditioner_size, self.n_probes, self.variance_rank = preconditioner_size, n_probes, variance_rank
        self.cg_tol, self.max_cg_iter = cg_tol, max_cg_iter
        # Drawn on the CPU: the same probes on every device.
        shape = len(self.mean), preconditioner_size + len(self.X), n_probes
        draws = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(self.K.X)
        self.inner_draws, self.outer_draws = draws.split([preconditioner_size, len(self.X)], dim=1)
        self._chain: _Chain | None = None

    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> _Evaluation:
        t, last = self.n_probes, self._chain if warm else None
        kernel_parameters = joined(self.K.parameters)
        position = torch.cat([kernel_parameters, noise.double().mean(1), residual.double().mean(1)])
        step = torch.zeros_like(position) if last is None else position - last.position
        if last is None:
            preconditioner = self._preconditioner(noise)
            probes = preconditioner.sample(self.inner_draws, self.outer_draws)
            whitened, start = preconditioner.solve(probes), None
        else:
            preconditioner, probes, whitened = last[:3]
            if (last.steps + 1) % RENEWED == 0:
                preconditioner = self._preconditioner(noise)
            start = last.x + _share(step, last.step) * last.change
        out = solve(
            self.K, noise, torch.cat([probes, residual[:, :, None]], 2), preconditioner, start=start,
            n_probes=t if last is None else 0, tol=self.cg_tol, max_iter=self.max_cg_iter,
        )  # fmt: skip
        solution = out.x[:, :, t]

        # G has a part of probes, for the log determinants, and one of solutions, for the quadratic forms.
        other = torch.cat([whitened / t, -solution[:, :, None]], 2)
        by_noise = out.x * other
        trace_noise = by_noise[:, :, :t].sum(2)
        X, KX, Y = (_rows(V) for V in (out.x, out.product - noise[:, :, None] * out.x, other))
        trace_kernel, fit_kernel = self.K.form_gradients(X, KX, Y, [t * len(noise), len(noise)])

        if last is None:
            logdet = (preconditioner.logdet + tridiagonal_logdet(out.tridiagonal, self.K.n)).sum().item()
        else:
            moved = (noise - last.noise).double(), kernel_parameters - last.kernel_parameters
            mean = (trace_noise + last.by_noise).double() / 2, (trace_kernel + last.by_kernel) / 2
            logdet = last.logdet + sum((m * d).sum().item() for m, d in zip(mean, moved, strict=True))
        steps = 0 if last is None else last.steps + 1
        change = torch.zeros_like(out.x) if last is None else out.x - last.x
        spent = (steps > 0 and out.iterations > WARM_ITERATIONS) or steps == WARM_STEPS
        self._chain = None if spent else _Chain(
            preconditioner, probes, whitened, out.x, change, position, step, kernel_parameters, noise, logdet,
            trace_kernel, trace_noise, steps,
        )  # fmt: skip
        value = (residual.double() * solution.double()).sum().item() + logdet
        by_kernel = trace_kernel + fit_kernel
        return _Evaluation(value, solution, by_kernel, by_noise.sum(2), out.iterations, out.residual)

    def _solve(self, residual: Tensor, noise: Tensor) -> _Solved:
        out = solve(
            self.K, noise, residual[:, :, None], self._preconditioner(noise),
            tol=FINAL_TOLERANCE * self.cg_tol, max_iter=self.max_cg_iter,
        )  # fmt: skip
        return _Solved(out.x[:, :, 0], self._inverse_root(noise), out.iterations, out.residual)

    def _inverse_root(self, noise: Tensor) -> NDArray[np.float32] | None:
        """Roots R (C, n, k) with R R' below and near A_c^-1, from `variance_rank` Lanczos steps.

        R R' is A_c^-1 on a Krylov space and zero beside it, so a variance computed with it is never too small.
        """
        if self.variance_rank is None:
            return None
        rank = min(self.variance_rank, noise.shape[1])
        basis, tridiagonal = lanczos(
            lambda V: torch.addcmul(self.K.multiply(V), noise, V), self.outer_draws[:, :, 0], rank
        )
        # Rows of zeros, where a space was exhausted, need a factor all the same.
        tridiagonal += torch.diag_embed((tridiagonal.diagonal(dim1=1, dim2=2) == 0).double())
        identity = torch.eye(rank, dtype=torch.float64, device=basis.device).expand_as(tridiagonal)
        inverse = torch.linalg.solve_triangular(torch.linalg.cholesky(tridiagonal), identity, upper=False)
        root = torch.stack([Q.T @ L.T for Q, L in zip(basis, inverse.to(basis), strict=True)])
        single: NDArray[np.float32] = root.float().cpu().numpy()
        return single

    def _preconditioner(self, noise: Tensor) -> Preconditioner:
        return Preconditioner(pivoted_cholesky(self.K, self.preconditioner_size), noise)


def _share(step: Tensor, last: Tensor) -> float:
    """How many times as far a step goes in the direction of the last one: 1 for equal steps, 0 where it turns back."""
    square = last.square().sum().item()
    return min(max((step * last).sum().item() / square, 0.0), FARTHEST) if square > 0 else 0.0


def _rows(V: Tensor) -> Tensor:
    """Vectors of V (C, n, s) as rows (s * C, n)."""
    return V.permute(2, 0, 1).reshape(-1, V.shape[1])


def exact_engine(
    X: NDArray[np.floating],
    kernel: Kernel,
    n_classes: int,
    *,
    cholesky_size: int,
    preconditioner_size: int | Literal["auto"],
    n_probes: int,
    cg_tol: float,
    max_cg_iter: int,
    variance_rank: int | None,
    seed: int,
    **common: Any,
) -> ExactEngine:
    """Build the exact engine: Cholesky factors up to `cholesky_size` distinct instances, conjugate gradients above.

    Parameters
    ----------
    X : (n, d) array
        The training instances. Where a tenth of them or more are repeats, equal ones are merged (`mipl.gp.repeats`).
    kernel, n_classes, **common
        See `ExactEngine`.
    cholesky_size : int
        Up to this many distinct instances a `CholeskyEngine` is built; the other parameters then do nothing.
    preconditioner_size : int or "auto"
        Rank of the preconditioner of conjugate gradients; "auto" takes an 80th of the distinct instances, from 100 to
        300.
    n_probes, cg_tol, max_cg_iter, variance_rank, seed
        See `ConjugateGradientEngine`.
    """
    repeats = find_repeats(X)
    rows = X if repeats is None else X[repeats.first]
    if len(rows) <= max(cholesky_size, 1):  # Lanczos steps need two rows
        return CholeskyEngine(rows, kernel, n_classes, repeats=repeats, **common)
    auto = min(max(len(rows) // ROWS_PER_RANK, RANKS[0]), RANKS[1])
    rank = auto if isinstance(preconditioner_size, str) else preconditioner_size
    return ConjugateGradientEngine(
        rows, kernel, n_classes, preconditioner_size=rank, n_probes=n_probes, cg_tol=cg_tol,
        max_cg_iter=max_cg_iter, variance_rank=variance_rank, seed=seed, repeats=repeats, **common,
    )  # fmt: skip
