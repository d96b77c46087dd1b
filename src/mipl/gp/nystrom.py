r"""Nystrom features of a Matern-5/2 kernel: a Gaussian process as a linear model.

With M landmarks Z, :math:`k(x, x') \approx \phi(x)^\top \phi(x')`, :math:`\phi(x) = T^\top k(Z, x)` and
:math:`T = L^{-\top}`, :math:`L L^\top = k(Z, Z) + 10^{-4} I`. Rotating T by the eigenvectors of
:math:`G = \sum_x \phi(x) \phi(x)^\top` over the training rows makes G diagonal, so that a ridge regression with any
noise, or the curvature of a likelihood with any prior, is solved by a division; and the R features with the largest
eigenvalues say nearly all that M landmarks know.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["KernelMap", "LandmarkKernel", "cholesky_map", "gram_statistics", "principal"]

#: Added to the diagonal of k(Z, Z); it also bounds the entries of T, which are used in single precision.
_JITTER = 1e-4
_LN2 = math.log(2.0)
#: Rows at a time: their kernel with a few thousand landmarks stays in the cache, and matrix products are long enough.
_BLOCK_ROWS = 512


class LandmarkKernel:
    """The kernel of any rows with M landmarks: (1 + r + r^2/3) exp(-r), r = sqrt(5) |x - z| / lengthscale.

    Parameters
    ----------
    landmarks : (M, d)
    lengthscale : float
    """

    def __init__(self, landmarks: Tensor, lengthscale: float) -> None:
        self._centre = landmarks.mean(dim=0)
        # Distances in units in which the kernel decays as a power of two: torch's exp2 takes half the time of its exp.
        self._scale = math.sqrt(5.0) / (lengthscale * _LN2)
        # [a, |a|^2, 1] . [-2b, 1, |b|^2] = |a - b|^2: one product, and few passes over (n, M) after it.
        B = (landmarks - self._centre) * self._scale
        norm = (B * B).sum(dim=1, keepdim=True)
        self._right = torch.cat([-2 * B, torch.ones_like(norm), norm], dim=1).T.contiguous()

    def __call__(self, X: Tensor) -> Tensor:
        """Kernel (n, M) of rows (n, d)."""
        return self._evaluate(X, X.new_empty(2, len(X), self._right.shape[1]))

    def _evaluate(self, X: Tensor, buffer: Tensor) -> Tensor:
        """The kernel of rows (n, d), in the first half of a buffer (2, n, M)."""
        u, squared = buffer  # r = u ln 2
        A = (X - self._centre) * self._scale
        norm = (A * A).sum(dim=1, keepdim=True)
        torch.mm(torch.cat([A, norm, torch.ones_like(norm)], dim=1), self._right, out=squared).clamp_(min=0)
        torch.sqrt(squared, out=u)
        torch.add(u, squared, alpha=_LN2 / 3, out=squared)
        decay = u.neg_().exp2_()
        return torch.addcmul(decay, decay, squared, value=_LN2, out=decay)

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


def cholesky_map(landmarks: Tensor, lengthscale: float) -> KernelMap:
    """The map whose features have k(Z, Z) as their exact inner products at the landmarks (M, d)."""
    Z = landmarks.double()
    K = LandmarkKernel(Z, lengthscale)(Z)
    K.diagonal().fill_(1.0 + _JITTER)
    eye = torch.eye(len(Z), dtype=Z.dtype, device=Z.device)
    inverse = torch.linalg.solve_triangular(torch.linalg.cholesky(K), eye, upper=False)
    return KernelMap(LandmarkKernel(landmarks, lengthscale), inverse.T.to(landmarks.dtype).contiguous())


def gram_statistics(features: Tensor) -> tuple[Tensor]:
    """The part (R, R) of G from some rows (n, R); it is summed over such parts in double precision."""
    return ((features.T @ features).double(),)


def principal(kernel_map: KernelMap, gram: Tensor, rank: int) -> tuple[KernelMap, Tensor]:
    """The map to the `rank` features with the largest eigenvalues of G (M, M), and these eigenvalues."""
    eigenvalues, vectors = torch.linalg.eigh(gram)
    T = kernel_map.T.double() @ vectors[:, -rank:]
    return KernelMap(kernel_map.kernel, T.to(kernel_map.T.dtype).contiguous()), eigenvalues[-rank:].clamp(min=0)
