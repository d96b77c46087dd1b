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

__all__ = ["KernelMap", "cholesky_map", "gram_statistics", "matern52", "principal"]

#: Added to the diagonal of k(Z, Z); it also bounds the entries of T, which are used in single precision.
_JITTER = 1e-4


class KernelMap(NamedTuple):
    r"""Features :math:`\phi(x) = T^\top k(Z, x)`.

    landmarks : (M, d)
    lengthscale : float
    T : (M, R)
    """

    landmarks: Tensor
    lengthscale: float
    T: Tensor

    def kernel(self, X: Tensor) -> Tensor:
        """Kernel (n, M) of rows (n, d) with the landmarks."""
        return matern52(X, self.landmarks, self.lengthscale)

    def __call__(self, X: Tensor) -> Tensor:
        """Features (n, R) of rows (n, d)."""
        return self.kernel(X) @ self.T


def matern52(X: Tensor, Z: Tensor, lengthscale: float) -> Tensor:
    """Kernel (n, M) of rows (n, d) and (M, d): (1 + r + r^2/3) exp(-r), r = sqrt(5) |x - z| / lengthscale."""
    centre = Z.mean(dim=0)
    scale = math.sqrt(5.0) / lengthscale
    A, B = (X - centre) * scale, (Z - centre) * scale
    # [a, |a|^2, 1] . [-2b, 1, |b|^2] = |a - b|^2: one product, and as few passes over (n, M) after it as can be.
    A = torch.cat([A, (A * A).sum(dim=1, keepdim=True), torch.ones_like(A[:, :1])], dim=1)
    B = torch.cat([-2 * B, torch.ones_like(B[:, :1]), (B * B).sum(dim=1, keepdim=True)], dim=1)
    squared = (A @ B.T).clamp_(min=0)
    r = squared.sqrt()
    torch.add(r, squared, alpha=1 / 3, out=squared)
    exponential = r.neg_().exp_()
    return torch.addcmul(exponential, exponential, squared, out=exponential)


def cholesky_map(landmarks: Tensor, lengthscale: float) -> KernelMap:
    """The map whose features have k(Z, Z) as their exact inner products at the landmarks."""
    Z = landmarks.double()
    K = matern52(Z, Z, lengthscale)
    K.diagonal().fill_(1.0 + _JITTER)
    eye = torch.eye(len(Z), dtype=Z.dtype, device=Z.device)
    inverse = torch.linalg.solve_triangular(torch.linalg.cholesky(K), eye, upper=False)
    return KernelMap(landmarks, lengthscale, inverse.T.to(landmarks.dtype).contiguous())


def gram_statistics(features: Tensor) -> tuple[Tensor]:
    """The part (R, R) of G from some rows (n, R); it is summed over such parts in double precision."""
    return ((features.T @ features).double(),)


def principal(kernel_map: KernelMap, gram: Tensor, rank: int) -> tuple[KernelMap, Tensor]:
    """The map to the `rank` features with the largest eigenvalues of G (M, M), and these eigenvalues."""
    eigenvalues, vectors = torch.linalg.eigh(gram)
    T = kernel_map.T.double() @ vectors[:, -rank:]
    return kernel_map._replace(T=T.to(kernel_map.T.dtype).contiguous()), eigenvalues[-rank:].clamp(min=0)
