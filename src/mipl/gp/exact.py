"""The exact engine: evidence, its gradient and the posterior of C Gaussian processes that share one kernel."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from linear_operator.utils.lanczos import lanczos_tridiag
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from mipl.gp.kernels import kernel_matrix
from mipl.gp.solvers import Preconditioner, pivoted_cholesky, refine, solve, system_product, tridiagonal_logdet

__all__ = ["Evidence", "ExactGP"]

# GPyTorch's lower bound of a learned noise.
NOISE_FLOOR = 1e-4
# A chain of warm evaluations ends, and the next one starts afresh, after this many steps, or when one of them needed
# more than so many iterations (its preconditioner has grown old).
WARM_STEPS = 100
WARM_ITERATIONS = 8


class Evidence(NamedTuple):
    """One evaluation of the objective: its value, the posterior mean (n, C) at the instances, and how CG went."""

    loss: float
    posterior_mean: NDArray[np.float64]
    iterations: int
    residual: float


class _Chain(NamedTuple):
    """An evaluation from which a warm one goes on; derivatives are those of the sum of log determinants."""

    preconditioner: Preconditioner
    probes: Tensor  # (C, n, t)
    whitened: Tensor  # (C, n, t), the preconditioner's inverse times the probes
    x: Tensor  # (C, n, t + 1), solutions for probes and residuals
    change: Tensor  # of x in the last step: the start for the next one is extrapolated
    kernel_parameters: Tensor  # (p,)
    noise: Tensor  # (C, n)
    logdet: float
    by_kernel: Tensor  # (p,)
    by_noise: Tensor  # (C, n)
    steps: int


class ExactGP(torch.nn.Module):
    r"""C independent Gaussian processes with one kernel, on n instances.

    Class c has targets :math:`y_c`, a constant mean :math:`\mu_c` and noise :math:`D_c = \mathrm{diag}(\sigma_c^2) +
    \tau_c I`, with given variances :math:`\sigma_c^2` and a learned :math:`\tau_c`. With :math:`A_c = K + D_c`,
    :math:`r_c = y_c - \mu_c` and :math:`a_c = A_c^{-1} r_c`, the objective is the mean negative log evidence

    .. math:: L = \frac{1}{2nC} \sum_c r_c^\top a_c + \log |A_c| + n \log 2\pi .

    Its gradient needs, for all C systems together, one matrix :math:`G = \partial L / \partial K`, a sum of outer
    products:

    .. math:: 2nC\, G = \sum_c A_c^{-1} - a_c a_c^\top \approx
              \sum_c \frac{1}{t} \sum_{p=1}^t (A_c^{-1} z_{cp}) (P_c^{-1} z_{cp})^\top - a_c a_c^\top ,

    with probes :math:`z_{cp}` of covariance :math:`P_c`, the preconditioner. G is never formed: its vectors meet
    :math:`\partial K` in one more product of the kind that CG takes. The probes come from normal draws that are fixed
    for the lifetime of the object, so the objective is a deterministic function of the hyper-parameters. Up to
    `cholesky_size` instances everything is computed by Cholesky factors in float64, without probes.

    A *warm* evaluation goes on from the one before: same preconditioner and probes, solutions refined to `cg_tol` from
    the last ones, and the log determinants carried along by the trapezoid rule on their own gradient, since a refined
    solution has no Lanczos matrices. While an optimizer takes small steps this needs one to three products with K
    where a fresh evaluation needs ten to thirty.

    Parameters
    ----------
    X : (n, d) array
    kernel : gpytorch.kernels.Kernel
        Becomes part of the module; its parameters are learned.
    n_classes : int
        C.
    extra_noise : float
        Start value of :math:`\tau_c`.
    cholesky_size, preconditioner_size, n_probes, max_cg_iter : int
    cg_tol : float
        Bound of the relative residual, averaged over classes and right-hand sides.
    memory_budget : float
        Bytes for halves of (n, n) matrices: distances, K and its derivative are kept if all fit, else K alone, else
        tiles are computed when they are needed.
    dtype : torch.dtype
        Of the iterative path; the Cholesky path is float64.
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        kernel: Kernel,
        n_classes: int,
        *,
        extra_noise: float,
        cholesky_size: int,
        preconditioner_size: int,
        n_probes: int,
        cg_tol: float,
        max_cg_iter: int,
        memory_budget: float,
        seed: int,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        n = len(X)
        self.direct = n <= cholesky_size
        self.dtype = torch.float64 if self.direct else dtype
        self.kernel = kernel.to(device=device, dtype=self.dtype)
        self.mean = torch.nn.Parameter(torch.zeros(n_classes, dtype=torch.float64, device=device))
        raw_noise = math.log(math.expm1(max(extra_noise - NOISE_FLOOR, NOISE_FLOOR)))
        self.raw_noise = torch.nn.Parameter(torch.full_like(self.mean, raw_noise))
        self.K = kernel_matrix(self.kernel, torch.tensor(X, dtype=self.dtype, device=device), memory_budget)
        self.preconditioner_size = preconditioner_size
        self.n_probes, self.cg_tol, self.max_cg_iter = n_probes, cg_tol, max_cg_iter
        # Drawn on the CPU: the same probes on every device.
        shape = n_classes, preconditioner_size + n, n_probes
        draws = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(self.K.X)
        self.inner_draws, self.outer_draws = draws.split([preconditioner_size, n], dim=1)
        self._chain: _Chain | None = None

    @property
    def extra_noise(self) -> Tensor:
        """The learned homoscedastic noise (C,)."""
        return softplus(self.raw_noise) + NOISE_FLOOR

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective at targets and noise variances (n, C), and set `grad` of every parameter.

        With `warm`, from the evaluation before, if there was one.
        """
        self.zero_grad()
        self.K.update()
        if not warm:
            self._chain = None
        residual, total_noise = self._systems(targets, noise)
        factor = 1 / (2 * targets.size)
        with torch.no_grad():
            evaluate = self._direct_evidence if self.direct else self._iterative_evidence
            value, solution, by_kernel, by_noise, iterations, cg_residual = evaluate(residual, total_noise)
        sizes = [p.numel() for p in self.K.parameters]
        for parameter, gradient in zip(self.K.parameters, by_kernel.split(sizes), strict=True):
            parameter.grad = (factor * gradient).view_as(parameter).to(parameter)
        loss = factor * value + math.log(2 * math.pi) / 2
        self.mean.grad = -2 * factor * solution.sum(1).double()
        (factor * by_noise.sum(1).double() @ self.extra_noise).backward()
        posterior_mean = targets - (total_noise * solution).T.double().cpu().numpy()
        return Evidence(loss, posterior_mean, iterations, cg_residual)

    @torch.no_grad()
    def condition(
        self, targets: NDArray[np.float64], noise: NDArray[np.float64], tol: float
    ) -> tuple[NDArray[np.float64], int, float]:
        """Solutions a (n, C) that predict the mean, iterations and residual, at the present hyper-parameters."""
        self.K.update()
        residual, total_noise = self._systems(targets, noise)
        if self.direct:
            solution, iterations, cg_residual = self._cholesky_solve(residual, total_noise), 0, 0.0
        else:
            out = solve(
                self.K, total_noise, residual[:, :, None], self._preconditioner(total_noise),
                n_probes=0, tol=tol, max_iter=self.max_cg_iter,
            )  # fmt: skip
            solution, iterations, cg_residual = out.x[:, :, 0], out.iterations, out.residual
        return solution.T.double().contiguous().cpu().numpy(), iterations, cg_residual

    @torch.no_grad()
    def inverse_root(self, noise: NDArray[np.float64], rank: int) -> NDArray[np.float32]:
        """Roots R (C, n, k) with R R' below and near A_c^-1, from `rank` Lanczos steps.

        R R' is A_c^-1 on a Krylov space and zero beside it, so a variance computed with it is never too small.
        """
        self.K.update()
        _, total_noise = self._systems(np.zeros_like(noise), noise)
        C, n = total_noise.shape
        start = self.outer_draws[:, :, :1]
        basis, tridiagonal = lanczos_tridiag(
            lambda V: system_product(self.K, total_noise, V), rank, self.dtype, start.device, torch.Size((n, n)),
            batch_shape=torch.Size((C,)), init_vecs=start,
        )  # fmt: skip
        factor = torch.linalg.cholesky(tridiagonal.double())
        root = torch.linalg.solve_triangular(factor, basis.mT.double(), upper=False).mT
        return root.float().cpu().numpy()

    # ---------------------------------------------------------------- one path for few, one for many instances

    def _systems(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """Residuals r (C, n) and total noises (C, n) in the working precision."""
        y = torch.as_tensor(targets.T, device=self.mean.device)
        variances = torch.as_tensor(noise.T, device=self.mean.device)
        with torch.no_grad():
            residual, total = y - self.mean[:, None], variances + self.extra_noise[:, None]
        return residual.to(self.dtype).contiguous(), total.to(self.dtype).contiguous()

    # Both give the value without factor and constant, the solutions, the value's derivatives, and how CG went.

    def _direct_evidence(self, residual: Tensor, noise: Tensor) -> tuple[float, Tensor, Tensor, Tensor, int, float]:
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
        return value, solution, self.K.gradient(weight), by_noise, 0, 0.0

    def _iterative_evidence(self, residual: Tensor, noise: Tensor) -> tuple[float, Tensor, Tensor, Tensor, int, float]:
        t, chain = self.n_probes, self._chain
        preconditioner = self._preconditioner(noise) if chain is None else chain.preconditioner
        probes = preconditioner.sample(self.inner_draws, self.outer_draws) if chain is None else chain.probes
        whitened = preconditioner.solve(probes) if chain is None else chain.whitened
        rhs = torch.cat([probes, residual[:, :, None]], 2)
        if chain is None:
            out = solve(self.K, noise, rhs, preconditioner, n_probes=t, tol=self.cg_tol, max_iter=self.max_cg_iter)
        else:
            out = refine(
                self.K, noise, rhs, chain.x + chain.change, preconditioner, tol=self.cg_tol, max_iter=self.max_cg_iter
            )
        solution = out.x[:, :, t]

        # G has a part of probes, for the log determinants, and one of solutions, for the quadratic forms.
        other = torch.cat([whitened / t, -solution[:, :, None]], 2)
        by_noise = out.x * other
        trace_noise = by_noise[:, :, :t].sum(2)
        X, KX, Y = (_rows(V) for V in (out.x, out.product - noise[:, :, None] * out.x, other))
        trace_kernel, fit_kernel = self.K.form_gradients(X, KX, Y, [t * len(noise), len(noise)])

        kernel_parameters = torch.cat([p.detach().double().reshape(-1) for p in self.K.parameters])
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
            preconditioner, probes, whitened, out.x, change, kernel_parameters, noise, logdet, trace_kernel,
            trace_noise, steps,
        )  # fmt: skip
        value = (residual.double() * solution.double()).sum().item() + logdet
        return value, solution, trace_kernel + fit_kernel, by_noise.sum(2), out.iterations, out.residual

    def _preconditioner(self, noise: Tensor) -> Preconditioner:
        return Preconditioner(pivoted_cholesky(self.K, self.preconditioner_size), noise)

    def _cholesky_solve(self, residual: Tensor, noise: Tensor) -> Tensor:
        K = self.K.dense()
        factors = (torch.linalg.cholesky(K + diagonal.diag()) for diagonal in noise)
        return torch.stack([torch.cholesky_solve(r[:, None], f)[:, 0] for r, f in zip(residual, factors, strict=True)])


def _rows(V: Tensor) -> Tensor:
    """Vectors of V (C, n, s) as rows (s * C, n)."""
    return V.permute(2, 0, 1).reshape(-1, V.shape[1])
