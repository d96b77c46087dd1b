"""Distances between rows from products of matrices, precise also for rows that are close to each other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = [
    "CHUNK",
    "LARGEST",
    "centre_of",
    "distances",
    "distances_from",
    "left_rows",
    "right_rows",
    "squared_distances",
]

# Elements that passes over a matrix handle at once, so that they find them in the cache.
CHUNK = 1 << 18
# Squared distances below this share of the squared length of a row are computed from differences: above, the relative
# error of single precision is 1e-4 at most. Larger squared lengths than the latter are not for single precision.
_NEAR = 2e-3
LARGEST = 1e30
#: How much larger the squared length of an instance than the median one is wild.
_WILD = 1e12


def distances(A: Tensor, B: Tensor) -> Tensor:
    """Euclidean distances (a, b) between rows; in double precision where their squares are beyond single precision."""
    squares = A.square().sum(1), B.square().sum(1)
    if A.dtype != torch.float64 and not all(lengths.max() <= LARGEST for lengths in squares):
        return distances(A.double(), B.double())
    return distances_from(A, squares[0], B, squares[1])


def distances_from(A: Tensor, A_squares: Tensor, B: Tensor, B_squares: Tensor) -> Tensor:
    """Distances (a, b) between rows of A (a, d) and B (b, d), whose squared lengths are given."""
    out = A.new_empty(len(A), len(B))
    for part in squared_distances(A, A_squares, left_rows(A, A_squares), B, right_rows(B, B_squares), out):
        part.sqrt_()
    return out


def left_rows(A: Tensor, A_squares: Tensor) -> Tensor:
    """Rows [-2 a, |a|^2, 1], whose products with those of `right_rows` are squared distances."""
    return torch.cat([-2 * A, A_squares[:, None], torch.ones_like(A_squares)[:, None]], 1)


def right_rows(B: Tensor, B_squares: Tensor) -> Tensor:
    """Rows [b, 1, |b|^2]."""
    return torch.cat([B, torch.ones_like(B_squares)[:, None], B_squares[:, None]], 1)


def squared_distances(
    A: Tensor, A_squares: Tensor, left: Tensor, B: Tensor, right: Tensor, out: Tensor
) -> Iterator[Tensor]:
    """Squared distances between rows of A (a, d) and B (b, d) in `out` (a, b), of which rows are given out in turn.

    `left` and `right` are what `left_rows` and `right_rows` make of A and B. A product of matrices leaves a rounding
    error in proportion to the squared lengths, too large for rows that are close to each other. Such pairs are few, of
    about equal length, and subtracted from each other instead.
    """
    torch.mm(left, right.T, out=out)
    step = max(1, CHUNK // len(B))
    for rows, lengths, part in zip(A.split(step), A_squares.split(step), out.split(step), strict=True):
        close = (part.amin(1) < _NEAR * lengths).nonzero()[:, 0]
        if len(close):
            for pairs in (part[close] < _NEAR * lengths[close, None]).nonzero().split(CHUNK // 8):
                i, j = close[pairs[:, 0]], pairs[:, 1]
                part[i, j] = (rows[i] - B[j]).square_().sum(1)
        yield part


def centre_of(X: Tensor) -> Tensor:
    """An origin (d,) near the instances, so that distances from products of matrices are precise: their mean.

    One wild value of 1e19 would move the mean so far away that all other distances were lost in rounding. Instances a
    million times as long as the median one therefore do not count.
    """
    lengths = X.square().sum(1)
    usual = lengths[lengths > 0]
    if not len(usual) or not lengths.max() > _WILD * usual.median():
        return X.mean(0)
    return X[lengths <= _WILD * usual.median()].mean(0)
