"""Lanczos steps for one matrix per class, all classes together."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["by_class", "lanczos"]

# A Lanczos vector this short, relative to the longest before it is normalised, is rounding.
EXHAUSTED = 1e-6
# A vector that lost this much of its length is orthogonalised again.
CANCELLED = 0.7


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
