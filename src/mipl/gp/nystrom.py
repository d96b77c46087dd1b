r"""Nyström features of a Matérn-5/2 kernel: a Gaussian process as a linear model.

With M landmarks Z, :math:`k(x, x') \approx \phi(x)^\top \phi(x')`, :math:`\phi(x) = T^\top k(Z, x)` and
:math:`T = L^{-\top} V`, :math:`L L^\top = k(Z, Z) + 10^{-4} I`. V are the R leading eigenvectors of
:math:`L^\top D L`, the Gram matrix of the landmarks' features, each landmark counted as often as it has training rows
next to it: nearly the principal features of the training rows, without a pass over these. R = M / 2 of them say nearly
all that M landmarks know.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mipl.gp.landmarks import middle_of_wide
from mipl.gp.matern import decay_rate, matern

__all__ = ["KernelMap", "LandmarkKernel", "principal_map"]

_NU = 2.5
#: Added to the diagonal of k(Z, Z); it also bounds the entries of T, which are used in single precision.
_JITTER = 1e-4
#: Rows at a time: their kernel with a few thousand landmarks stays in the cache, and matrix products are long enough.
_BLOCK_ROWS = 512
#: Scaled coordinates beyond this are cut off. The kernel there is zero in any case, and squares stay numbers.
_FAR = 2.0**50


class LandmarkKernel:
    """The Matérn-5/2 kernel of any rows with M landmarks (`mipl.gp.matern`).

    Parameters
    ----------
    landmarks : (M, d) tensor
        The rows whose kernel with others is asked for.
    lengthscale : float
        Lengthscale of the kernel.
    """

    def __init__(self, landmarks: Tensor, lengthscale: float) -> None:
        middle = middle_of_wide(landmarks)
        self._centre = landmarks.mean(dim=0) if middle is None else middle
        self._scale = min(decay_rate(_NU, lengthscale), torch.finfo(landmarks.dtype).max)
        # [a, |a|^2, 1] . [-2b, 1, |b|^2] = |a - b|^2: one product, and few passes over (n, M) after it.
        B = self._scaled(landmarks)
        norm = (B * B).sum(dim=1, keepdim=True)
        self._right = torch.cat([-2 * B, torch.ones_like(norm), norm], dim=1).T.contiguous()

    def _scaled(self, X: Tensor) -> Tensor:
        return ((X - self._centre) * self._scale).clamp_(-_FAR, _FAR)

    def precise(self, X: Tensor) -> Tensor:
        """Kernel (n, n) of rows (n, d) from differences, where products of matrices lose too many digits; slow."""
        A = self._scaled(X)
        squares = torch.cdist(A, A, compute_mode="donot_use_mm_for_euclid_dist").square_()
        return matern(squares, _NU, out=torch.empty_like(squares))

    def __call__(self, X: Tensor) -> Tensor:
        """Kernel (n, M) of rows (n, d); zero, not undefined, however far a row is from all landmarks."""
        return self._evaluate(X, X.new_empty(2, len(X), self._right.shape[1]))

    def _evaluate(self, X: Tensor, buffer: Tensor) -> Tensor:
        """The kernel of rows (n, d), in the first half of a buffer (2, n, M)."""
        values, squares = buffer
        A = self._scaled(X)
        norm = (A * A).sum(dim=1, keepdim=True)
        torch.mm(torch.cat([A, norm, torch.ones_like(norm)], dim=1), self._right, out=squares).clamp_(min=0)
        return matern(squares, _NU, out=values)

    def project(self, X: Tensor, T: Tensor) -> Tensor:
        """Kernel times T (n, k), for T (M, k), without ever holding more than a block of the kernel."""
        out = X.new_empty(len(X), T.shape[1])
        buffer = X.new_empty(2, min(len(X), _BLOCK_ROWS), len(T))
        for rows, result in zip(X.split(_BLOCK_ROWS), out.split(_BLOCK_ROWS), strict=True):
            torch.mm(self._evaluate(rows, buffer[:, : len(rows)]), T, out=result)
        return out


class KernelMap(NamedTuple):
    r"""Features :math:`\phi(x) = T^\top k(Z, x)`, T being (M, R)."""

    kernel: LandmarkKernel
    T: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """Features (n, R) of rows (n, d)."""
        return self.kernel.project(X, self.T)


def principal_map(landmarks: Tensor, counts: Tensor, lengthscale: float, rank: int) -> KernelMap:
    """The map to the principal features of landmarks.

    Parameters
    ----------
    landmarks : (M, d) tensor
        Z.
    counts : (M,) tensor
        How many rows each landmark stands for.
    lengthscale : float
        Lengthscale of the kernel.
    rank : int
        R, the number of features; all M where that is fewer.
    """
    Z = landmarks.double()
    kernel = LandmarkKernel(Z, lengthscale)
    L, failed = _root(kernel(Z))
    if failed:  # groups of landmarks far from each other: each is lost in rounding beside the distance of the others
        L, _ = _root(kernel.precise(Z))
    # The precision of the landmarks suffices to choose a subspace: single takes half the time of double. Where all
    # features are kept, it is a basis near the principal one: little is lost when features are rotated to that.
    weighted = (L.T * counts.sqrt()).to(landmarks.dtype)
    leading = torch.linalg.eigh(weighted @ weighted.T).eigenvectors[:, -rank:].double()
    T = torch.linalg.solve_triangular(L.T, leading, upper=True)
    return KernelMap(LandmarkKernel(landmarks, lengthscale), T.to(landmarks.dtype).contiguous())


def _root(K: Tensor) -> tuple[Tensor, bool]:
    """The Cholesky factor of a kernel matrix with jitter, and whether there is none; the matrix is changed."""
    K.diagonal().fill_(1.0 + _JITTER)
    L, failed = torch.linalg.cholesky_ex(K)
    return L, bool(failed)
