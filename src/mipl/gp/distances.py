"""Distances between rows from products of matrices, precise also for rows that are close to each other."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["CHUNK", "LARGEST", "centre_of", "distances", "squared_distances"]

# Elements that passes over a matrix handle at once, so that they find them in the cache.
CHUNK = 1 << 18
# Squared distances below this share of the squared length of a row are computed from differences: above, the relative
# error of single precision is 1e-4 at most. Larger squared lengths than the latter are not for single precision.
_NEAR = 2e-3
LARGEST = 1e30
#: How much larger the squared length of an instance than the median one is an outlier.
_WILD = 1e12


def distances(A: Tensor, B: Tensor) -> Tensor:
    """Euclidean distances (a, b) between rows; in double precision where their squares are beyond single precision."""
    return squared_distances(A, B).sqrt_()


def squared_distances(A: Tensor, B: Tensor) -> Tensor:
    """Squared distances (a, b) between rows of A (a, d) and B (b, d), in the precision that `distances` has.

    A product of matrices leaves a rounding error in proportion to the squared lengths, too large for rows that are
    close to each other. Such pairs are few, of about equal length, and subtracted from each other instead.
    """
    squares = A.square().sum(1)
    others = B.square().sum(1)
    if A.dtype != torch.float64 and not (squares.max() <= LARGEST and others.max() <= LARGEST):
        return squared_distances(A.double(), B.double())
    left = torch.cat([-2 * A, squares[:, None], torch.ones_like(squares)[:, None]], 1)
    right = torch.cat([B, torch.ones_like(others)[:, None], others[:, None]], 1)
    out = left @ right.T
    step = max(1, CHUNK // len(B))
    for rows, lengths, part in zip(A.split(step), squares.split(step), out.split(step), strict=True):
        close = (part.amin(1) < _NEAR * lengths).nonzero()[:, 0]
        if len(close):
            for pairs in (part[close] < _NEAR * lengths[close, None]).nonzero().split(CHUNK // 8):
                i, j = close[pairs[:, 0]], pairs[:, 1]
                part[i, j] = (rows[i] - B[j]).square_().sum(1)
    return out


def centre_of(X: Tensor) -> Tensor:
    """An origin (d,) near the instances, so that distances from products of matrices are precise: their mean.

    One value of 1e19 would move the mean so far away that all other distances were lost in rounding. Instances a
    million times as long as the median one therefore do not count.
    """
    lengths = X.square().sum(1)
    usual = lengths[lengths > 0]
    if not len(usual) or not lengths.max() > _WILD * usual.median():
        return X.mean(0)
    return X[lengths <= _WILD * usual.median()].mean(0)
