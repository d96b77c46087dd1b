"""The exact engine for many instances: conjugate gradients for all classes at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.exact import Evaluation, ExactEngine, Solve
from mipl.gp.lanczos import lanczos
from mipl.gp.parameters import joined
from mipl.gp.repeats import Repeats
from mipl.gp.solvers import Preconditioner, pivoted_cholesky, refine, solve, tridiagonal_logdet

__all__ = ["ConjugateGradientEngine"]

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
# With the variances of landmarks less is enough: means are off by less than a hundredth of their spread.
LANDMARK_TOLERANCE = 0.1


class _Chain(NamedTuple):
    """An evaluation from which a warm one goes on; derivatives are those of the sum of log determinants."""

    preconditioner: Preconditioner  # of conjugate gradients
    probes: Tensor  # (C, n, t)
    whitened: Tensor  # (C, n, t), the inverse of the first preconditioner, their covariance, times the probes
    x: Tensor  # (C, n, t + 1), solutions for probes and residuals
    change: Tensor  # of x in the last step: the start for the next one is extrapolated
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

    A *warm* evaluation goes on from the one before: same probes, solutions refined to `cg_tol` from
    the last ones, and the log determinants carried along by the trapezoid rule on their own gradient, since a refined
    solution has no Lanczos matrices. While an optimizer takes small steps this needs one to three products with K
    where a fresh evaluation needs ten to thirty.

    Parameters
    ----------
    X, kernel, n_classes, extra_noise, memory_budget, device, weights
        See `ExactEngine`.
    preconditioner_size : int
        Rank of the pivoted Cholesky factor that all classes share.
    n_probes : int
        Probes t per class.
    cg_tol : float
        Bound of the relative residual in training, averaged over classes and right-hand sides; `condition` goes a
        hundred times further, with landmarks ten times.
    max_cg_iter : int
        Bound of the iterations of one solve.
    variance_rank : int or None
        Lanczos steps for the roots of the inverses that posterior variances use; with None the posterior computes
        variances exactly.
    seed : int
        Seed of the probes.
    dtype : torch.dtype, default=torch.float32
        Precision of kernel matrices and solutions.
    repeats : Repeats or None, default=None
        See `ExactEngine`.
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
        preconditioner_size: int,
        n_probes: int,
        cg_tol: float,
        max_cg_iter: int,
        variance_rank: int | None,
        seed: int,
        dtype: torch.dtype = torch.float32,
        weights: NDArray[np.float64] | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        super().__init__(
            X,
            kernel,
            n_classes,
            extra_noise=extra_noise,
            memory_budget=memory_budget,
            device=device,
            dtype=dtype,
            weights=weights,
            repeats=repeats,
        )
        self.preconditioner_size, self.n_probes, self.variance_rank = preconditioner_size, n_probes, variance_rank
        self.cg_tol, self.max_cg_iter = cg_tol, max_cg_iter
        # Drawn on the CPU: the same probes on every device.
        shape = n_classes, preconditioner_size + len(X), n_probes
        draws = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(self.K.X)
        self.inner_draws, self.outer_draws = draws.split([preconditioner_size, len(X)], dim=1)
        self._chain: _Chain | None = None

    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> Evaluation:
        t, chain = self.n_probes, self._chain if warm else None
        renewed = chain is not None and (chain.steps + 1) % RENEWED == 0
        preconditioner = self._preconditioner(noise) if chain is None or renewed else chain.preconditioner
        probes = preconditioner.sample(self.inner_draws, self.outer_draws) if chain is None else chain.probes
        whitened = preconditioner.solve(probes) if chain is None else chain.whitened
        rhs = torch.cat([probes, residual[:, :, None]], 2)
        kernel_parameters = joined(self.K.parameters)
        position = torch.cat([kernel_parameters, noise.double().mean(1), residual.double().mean(1)])
        step = torch.zeros_like(position) if chain is None else position - chain.position
        if chain is None:
            out = solve(self.K, noise, rhs, preconditioner, n_probes=t, tol=self.cg_tol, max_iter=self.max_cg_iter)
        else:
            start = chain.x + _share(step, chain.step) * chain.change
            out = refine(self.K, noise, rhs, start, preconditioner, tol=self.cg_tol, max_iter=self.max_cg_iter)
        solution = out.x[:, :, t]

        # G has a part of probes, for the log determinants, and one of solutions, for the quadratic forms.
        other = torch.cat([whitened / t, -solution[:, :, None]], 2)
        by_noise = out.x * other
        trace_noise = by_noise[:, :, :t].sum(2)
        X, KX, Y = (_rows(V) for V in (out.x, out.product - noise[:, :, None] * out.x, other))
        trace_kernel, fit_kernel = self.K.form_gradients(X, KX, Y, [t * len(noise), len(noise)])

        if chain is None:
            assert out.tridiagonal is not None
            relative = tridiagonal_logdet(out.tridiagonal.double(), self.K.n)
            logdet = (preconditioner.logdet + relative).sum().item()
        else:
            moved = (noise - chain.noise).double(), kernel_parameters - chain.kernel_parameters
            mean = (trace_noise + chain.by_noise).double() / 2, (trace_kernel + chain.by_kernel) / 2
            logdet = chain.logdet + sum((m * d).sum().item() for m, d in zip(mean, moved, strict=True))
        steps = 0 if chain is None else chain.steps + 1
        change = torch.zeros_like(out.x) if chain is None else out.x - chain.x
        spent = (steps > 0 and out.iterations > WARM_ITERATIONS) or steps == WARM_STEPS
        self._chain = None if spent else _Chain(
            preconditioner, probes, whitened, out.x, change, position, step, kernel_parameters, noise, logdet,
            trace_kernel, trace_noise, steps,
        )  # fmt: skip
        value = (residual.double() * solution.double()).sum().item() + logdet
        return Evaluation(
            value, solution, trace_kernel + fit_kernel, by_noise.sum(2), out.iterations, out.residual
        )  # fmt: skip

    def _solve(self, residual: Tensor, noise: Tensor, preconditioner: Preconditioner | None) -> Solve:
        share = FINAL_TOLERANCE if preconditioner is None else LANDMARK_TOLERANCE
        out = refine(
            self.K, noise, residual[:, :, None], None, preconditioner or self._preconditioner(noise),
            tol=share * self.cg_tol, max_iter=self.max_cg_iter,
        )  # fmt: skip
        return Solve(out.x[:, :, 0], out.iterations, out.residual)

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
        single: NDArray[np.float32] | None = root.float().cpu().numpy()
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
