r"""Nystrom features of a Matern-5/2 kernel: a Gaussian process as a linear model.

With M landmarks Z, :math:`k(x, x') \approx \phi(x)^\top \phi(x')`, :math:`\phi(x) = T^\top k(Z, x)` and
:math:`T = L^{-\top}`, :math:`L L^\top = k(Z, Z) + 10^{-4} I`. Rotating T by the eigenvectors of
:math:`G = \sum_x \phi(x) \phi(x)^\top` over the training rows makes G diagonal, so that a ridge regression with any
noise, or the curvature of a likelihood with any prior, is solved by a division.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["KernelMap", "cholesky_map", "gram_statistics", "matern52", "rotate_to_eigenbasis"]

#: Added to the diagonal of k(Z, Z); it also bounds the entries of T, which are used in single precision.
_JITTER = 1e-4


class KernelMap(NamedTuple):
    """Features :math:`\\phi(x) = T^\\top k(Z, x)`.

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
    squared = torch.addmm((B * B).sum(dim=1), A, B.T, alpha=-2).add_((A * A).sum(dim=1, keepdim=True)).clamp_(min=0)
    r = squared.sqrt()
    polynomial = squared.div_(3).add_(r).add_(1)
    return polynomial.mul_(r.neg_().exp_())


def cholesky_map(landmarks: Tensor, lengthscale: float) -> KernelMap:
    """The map whose features have k(Z, Z) as their exact inner products at the landmarks."""
    Z = landmarks.double()
    K = matern52(Z, Z, lengthscale)
    K.diagonal().fill_(1.0 + _JITTER)
    eye = torch.eye(len(Z), dtype=Z.dtype, device=Z.device)
    inverse = torch.linalg.solve_triangular(torch.linalg.cholesky(K), eye, upper=False)
    return KernelMap(landmarks, lengthscale, inverse.T.to(landmarks.dtype).contiguous())


def gram_statistics(features: Tensor) -> Tensor:
    """A shard's part of G: features (n, R) to (R, R), multiplied in single and summed in double precision."""
    return sum((block.T @ block).double() for block in features.split(8192))  # type: ignore[return-value]


def rotate_to_eigenbasis(kernel_map: KernelMap, gram: Tensor) -> tuple[KernelMap, Tensor, Tensor]:
    """The map rotated to the eigenvectors of G (R, R), the rotation (R, R) and the eigenvalues (R,)."""
    eigenvalues, rotation = torch.linalg.eigh(gram)
    rotation = rotation.to(kernel_map.T.dtype)
    rotated = KernelMap(kernel_map.landmarks, kernel_map.lengthscale, kernel_map.T @ rotation)
    return rotated, rotation, eigenvalues.clamp(min=0)
