"""Conjugate gradients and Lanczos steps for C systems K + D_c that share K and differ in a diagonal.

All systems and right-hand sides take one matrix product with K per iteration, and one low-rank factor of K, with a
Woodbury correction each, preconditions all of them. linear_operator would solve and factor each system by itself, never
takes fewer than ten iterations, and cannot start from the solution of the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.gp.kernels import KernelMatrix

__all__ = [
    "Preconditioner",
    "Solution",
    "by_class",
    "lanczos",
    "pivoted_cholesky",
    "solve",
    "system_product",
    "tridiagonal_logdet",
    "weighted_grams",
]

# Lanczos steps for the log determinant: ten suffice on the preconditioned systems.
LANCZOS_STEPS = 10
# Rows whose products are summed in the precision of the factor; longer sums are added up in double precision.
BLOCK_ROWS = 4096
# A Lanczos vector this short, relative to the longest before it is normalised, is rounding.
EXHAUSTED = 1e-6
# A vector that lost this much of its length is orthogonalised again.
CANCELLED = 0.7


# -------------------------------------------------------------------- preconditioner


def pivoted_cholesky(K: KernelMatrix, rank: int) -> Tensor:
    """A factor L (n, k), k <= rank, with L L' close to K: the rows of K of largest remaining variance, in turn."""
    remaining = K.diagonal().clone()
    smallest = 1e-6 * remaining.max()
    L = remaining.new_zeros(min(rank, K.n), K.n)
    for k in range(len(L)):
        pivot = int(remaining.argmax())
        if remaining[pivot] <= smallest:
            return L[:k].T
        row = K.row(pivot) - L[:k, pivot] @ L[:k]
        L[k] = row / remaining[pivot].sqrt()
        remaining -= L[k].square()
        remaining[pivot] = 0
    return L.T


def weighted_grams(L: Tensor, weights: Tensor) -> Tensor:
    """The sums of w_ci l_i l_i' over rows l_i of L (n, k), for weights (C, n): (C, k, k), in double precision.

    Most rows of a class have one weight, that of rows without the candidate. All classes share the sum over all rows,
    times that weight; only the other rows are summed again.
    """
    shared = _gram(L, None)
    grams = shared.new_empty(len(weights), *shared.shape)
    for weight, gram in zip(weights.double(), grams, strict=True):
        values, counts = weight.unique(return_counts=True)
        usual = values[counts.argmax()]
        rows = (weight != usual).nonzero()[:, 0]
        torch.mul(shared, usual, out=gram).add_(_gram(L[rows], weight[rows] - usual))
    return grams


def _gram(L: Tensor, weights: Tensor | None) -> Tensor:
    out = torch.zeros(L.shape[1], L.shape[1], dtype=torch.float64, device=L.device)
    for start in range(0, len(L), BLOCK_ROWS):
        block = L[start : start + BLOCK_ROWS]
        left = block if weights is None else block * weights[start : start + BLOCK_ROWS, None].to(block.dtype)
        out += left.T @ block
    return out


class Preconditioner:
    """P_c = L L' + D_c for all systems c, inverted by the Woodbury identity.

    Parameters
    ----------
    L : (n, k) tensor
        The shared low-rank factor.
    noise : (C, n) tensor
        The diagonals D_c.
    """

    def __init__(self, L: Tensor, noise: Tensor) -> None:
        self.L, self.noise = L, noise
        identity = torch.eye(L.shape[1], dtype=torch.float64, device=L.device)
        inner = torch.linalg.cholesky(weighted_grams(L, 1 / noise.double()) + identity)
        self.logdet = 2 * inner.diagonal(dim1=1, dim2=2).log().sum(1) + noise.double().log().sum(1)
        self.inner = inner.to(L.dtype)

    def solve(self, V: Tensor) -> Tensor:
        """P_c^-1 V_c for V (C, n, s)."""
        scaled = V / self.noise[:, :, None]
        small = _fold(self.L.T, scaled)  # (C, k, s)
        correction = _fold(self.L, torch.cholesky_solve(small, self.inner))
        return scaled - correction / self.noise[:, :, None]

    def sample(self, inner: Tensor, outer: Tensor) -> Tensor:
        """Vectors (C, n, t) with E[z z'] = P_c and z' P_c^-1 z = n, from normal draws (C, >= k, t) and (C, n, t)."""
        z = _fold(self.L, inner[:, : self.L.shape[1]]) + self.noise.sqrt()[:, :, None] * outer
        norm = (z * self.solve(z)).sum(1, keepdim=True)
        return z * (z.shape[1] / norm).sqrt()


def _fold(A: Tensor, V: Tensor) -> Tensor:
    """A V_c for all c with one product: (a, b) times (C, b, s)."""
    C, b, s = V.shape
    return (A @ V.permute(1, 0, 2).reshape(b, C * s)).view(len(A), C, s).permute(1, 0, 2)


# -------------------------------------------------------------------- conjugate gradients


class Solution(NamedTuple):
    """What `solve` returns.

    Attributes
    ----------
    x : (C, n, s) tensor
        Solutions of all systems.
    product : (C, n, s) tensor
        The systems times these.
    tridiagonal : (C, t, j, j) tensor of float64
        Lanczos matrices of the t probes.
    iterations : int
        Iterations that were made.
    residual : float
        Relative residual at the end, averaged over all right-hand sides.
    """

    x: Tensor
    product: Tensor
    tridiagonal: Tensor
    iterations: int
    residual: float


def system_product(K: KernelMatrix, noise: Tensor, V: Tensor) -> Tensor:
    """(K + D_c) V_c for V (C, n, s), with one product with K for all C * s columns."""
    C, n, s = V.shape
    product = K.multiply(V.mT.reshape(C * s, n))
    return torch.addcmul(product.view(C, s, n).mT, noise[:, :, None], V)


def solve(
    K: KernelMatrix,
    noise: Tensor,
    rhs: Tensor,
    preconditioner: Preconditioner,
    *,
    start: Tensor | None = None,
    n_probes: int = 0,
    tol: float,
    max_iter: int,
) -> Solution:
    """Solve (K + D_c) x_c = rhs_c for all classes c.

    Parameters
    ----------
    K : KernelMatrix
        The shared matrix, at its present parameters.
    noise : (C, n) tensor
        The diagonals D_c.
    rhs : (C, n, s) tensor
        Right-hand sides.
    preconditioner : Preconditioner
        Approximate inverses of the systems.
    start : (C, n, s) tensor, default=None
        Where to start; None for zero. No iteration is made where the start is good enough.
    n_probes : int, default=0
        The first so many right-hand sides are also tridiagonalised, for `tridiagonal_logdet`, which takes
        `LANCZOS_STEPS` iterations at least and a start of zero.
    tol : float
        Stop when the relative residual, averaged over all right-hand sides, is below it.
    max_iter : int
        Bound of the iterations.
    """
    tiny, eps = torch.finfo(rhs.dtype).tiny, torch.finfo(rhs.dtype).eps
    norm = rhs.norm(dim=1).clamp(min=tiny)
    x = torch.zeros_like(rhs) if start is None else start
    residual = rhs if start is None else rhs - system_product(K, noise, start)
    direction, last = torch.zeros_like(rhs), torch.ones_like(norm)
    least = min(LANCZOS_STEPS, max_iter) if n_probes else 0
    steps, ratios = [], []
    for iteration in range(max_iter + 1):
        share = residual.norm(dim=1) / norm
        relative = share.mean().item()
        if (relative < tol and iteration >= least) or iteration == max_iter:
            break
        preconditioned = preconditioner.solve(residual)
        length = (residual * preconditioned).sum(1)
        ratio = length / last
        direction = torch.addcmul(preconditioned, ratio[:, None], direction)
        product = system_product(K, noise, direction)
        step = length / (direction * product).sum(1).clamp(min=tiny)
        if iteration < least:  # a system that is solved up to rounding adds nothing
            going = (share > eps) & (step > 0)
            steps.append(step.where(going, 1.0)[:, :n_probes].double())
            ratios.append(ratio.where(going, 0.0)[:, :n_probes].double())
        x = torch.addcmul(x, step[:, None], direction)
        residual = torch.addcmul(residual, step[:, None], product, value=-1)
        last = length.clamp(min=tiny)
    return Solution(x, rhs - residual, _tridiagonal(steps, ratios), iteration, relative)


def _tridiagonal(steps: list[Tensor], ratios: list[Tensor]) -> Tensor:
    """Lanczos matrices (C, t, j, j) from the steps of conjugate gradients and the ratios of their residuals (C, t)."""
    if not steps:
        return torch.empty(0)
    inverse, ratio = 1 / torch.stack(steps, -1), torch.stack(ratios, -1)[..., 1:]
    diagonal = inverse.clone()
    diagonal[..., 1:] += ratio * inverse[..., :-1]
    beside = (ratio.sqrt() * inverse[..., :-1]).diag_embed(1)
    return diagonal.diag_embed() + beside + beside.mT


def tridiagonal_logdet(tridiagonal: Tensor, n: int) -> Tensor:
    """Log determinants log |P_c^-1 (K + D_c)| (C,) from the Lanczos matrices (C, t, j, j) of the probes."""
    values, vectors = torch.linalg.eigh(tridiagonal)
    weights = vectors[..., 0, :].square()
    logdet: Tensor = n * (weights * values.clamp(min=torch.finfo(values.dtype).tiny).log()).sum(-1).mean(-1)
    return logdet


# -------------------------------------------------------------------- Lanczos steps


def by_class(matrices: Tensor, V: Tensor) -> Tensor:
    """Each class's matrix (m, k) times its row of V (C, k); torch's batched product takes six times as long."""
    return torch.stack([matrix @ vector for matrix, vector in zip(matrices, V, strict=True)])


def lanczos(multiply: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Orthonormal bases of the Krylov spaces of symmetric matrices, and the matrices on them.

    Each new vector is orthogonalised against all before, as matrix products: linear_operator's function of this kind
    takes longer for that than products with a kernel matrix do. The bases of many classes do not fit into a cache, so
    they are read no more often than it takes.

    Parameters
    ----------
    multiply : callable
        Gives the product (C, n) of each class's matrix with its row of (C, n).
    start : (C, n) tensor
        The vectors to start from.
    steps : int
        Dimensions k of the spaces.

    Returns
    -------
    basis : (C, k, n) tensor
        Orthonormal rows; rows of zeros where a space has fewer dimensions.
    tridiagonal : (C, k, k) tensor of float64
        The matrices on these spaces, zero for rows of zeros.
    """
    C, n = start.shape
    basis = start.new_empty(C, steps, n)
    tridiagonal = start.new_zeros(C, steps, steps, dtype=torch.float64)
    norm = start.norm(dim=1)
    vector, scale = start / norm[:, None], 0.0
    for k in range(steps):
        basis[:, k] = vector
        known = basis[:, : k + 1]
        vector = multiply(vector)
        inner = (vector * basis[:, k]).sum(1)
        tridiagonal[:, k, k] = inner
        vector = torch.addcmul(vector, inner[:, None], basis[:, k], value=-1)
        if k:
            vector.addcmul_(norm[:, None], basis[:, k - 1], value=-1)
        # What is left is orthogonal to all before but for rounding, which grows where little is left.
        norm = vector.norm(dim=1)
        for _ in range(2):
            before, vector = norm, vector - by_class(known.mT, by_class(known, vector))
            norm = vector.norm(dim=1)
            if not (norm < CANCELLED * before).any():
                break
        scale = max(scale, norm.max().item())
        # A space that is exhausted goes on with zeros, which add nothing to a covariance.
        going = norm > EXHAUSTED * scale
        norm = torch.where(going, norm, 0)
        if k + 1 < steps:
            tridiagonal[:, k, k + 1] = tridiagonal[:, k + 1, k] = norm
        vector = torch.where(going[:, None], vector / norm[:, None], 0)
    return basis, tridiagonal
