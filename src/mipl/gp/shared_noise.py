"""Rows that share noises: what one Gram matrix per group of rows can serve in all classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NoiseLevels", "RowGroup", "noise_levels", "row_groups"]

# A class with more rare noises than this, as when noises follow each instance's weights, is summed row by row.
MAX_LEVELS = 8


class RowGroup(NamedTuple):
    """Rows that agree on which of their noises are not the usual ones.

    Attributes
    ----------
    rows : (k,) array of int
        The rows.
    levels : tuple of int
        Positions in `NoiseLevels.levels` of their rare noises.
    varying : tuple of int
        Positions in `NoiseLevels.varying` of the classes in which their noises are not the usual one.
    """

    rows: NDArray[np.int64]
    levels: tuple[int, ...]
    varying: tuple[int, ...]


class NoiseLevels(NamedTuple):
    """How the noises of C classes repeat.

    Attributes
    ----------
    usual : (C,) array
        The most frequent noise of each class: that of all rows without this candidate label.
    levels : list of (int, float)
        Class and value of every other noise, in the classes that have few of them.
    varying : list of int
        The classes that have many.
    """

    usual: NDArray[np.float64]
    levels: list[tuple[int, float]]
    varying: list[int]

    def by_row(self) -> NoiseLevels:
        """The same usual noises, where all others are of each row its own."""
        return NoiseLevels(self.usual, [], list(range(len(self.usual))))


def noise_levels(noise: NDArray[np.float64]) -> NoiseLevels:
    """Find what repeats in noises (n, C).

    >>> noise_levels(np.array([[9.0, 1.0], [9.0, 1.0], [2.0, 1.0]]))
    NoiseLevels(usual=array([9., 1.]), levels=[(0, 2.0)], varying=[])
    """
    found = NoiseLevels(np.empty(noise.shape[1]), [], [])
    for c in range(noise.shape[1]):
        values, counts = np.unique(noise[:, c], return_counts=True)
        most = int(counts.argmax())
        found.usual[c] = values[most]
        if len(values) - 1 > MAX_LEVELS:
            found.varying.append(c)
        else:
            found.levels.extend((c, float(value)) for value in np.delete(values, most))
    return found


def row_groups(noise: NDArray[np.float64], known: NoiseLevels) -> list[RowGroup]:
    """All rows of noises (n, C), each in one group; every noise is usual, of a level, or in a varying class.

    >>> noise = np.array([[9.0, 1.0], [9.0, 1.0], [2.0, 1.0]])
    >>> [(group.rows.tolist(), group.levels) for group in row_groups(noise, noise_levels(noise))]
    [([0, 1], ()), ([2], (0,))]
    """
    codes = np.zeros(noise.shape, dtype=np.int64)  # 1 + k is level k, -1 - k the varying class k, and 0 the usual noise
    for k, c in enumerate(known.varying):
        codes[:, c] = np.where(noise[:, c] == known.usual[c], 0, -1 - k)
    for k, (c, value) in enumerate(known.levels):
        codes[noise[:, c] == value, c] = 1 + k
    patterns, group_of = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(group_of.ravel(), kind="stable")
    bounds = np.cumsum(np.bincount(group_of.ravel()))[:-1]
    return [
        RowGroup(rows, tuple(int(k) - 1 for k in code if k > 0), tuple(-1 - int(k) for k in code if k < 0))
        for rows, code in zip(np.split(order, bounds), patterns, strict=True)
    ]
