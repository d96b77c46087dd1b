"""Rows that share noises: what one Gram matrix per group of rows can serve in all classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowGroup", "SharedNoise", "shared_noise"]

# A class with more rare noises than this, as when noises follow each instance's weights, is summed row by row.
MAX_LEVELS = 8


class RowGroup(NamedTuple):
    """Rows that agree on which of their noises are not the usual ones.

    Attributes
    ----------
    rows : (k,) array of int
        The rows.
    levels : tuple of int
        Positions in `SharedNoise.levels` of their rare noises.
    varying : tuple of int
        Varying classes in which their noises are not the usual one.
    """

    rows: NDArray[np.int64]
    levels: tuple[int, ...]
    varying: tuple[int, ...]


class SharedNoise(NamedTuple):
    """How noises (n, C) repeat.

    Attributes
    ----------
    usual : (C,) array
        The most frequent noise of each class: that of all rows without this candidate label.
    levels : list of (int, float)
        Class and value of every other noise, in the classes that have few of them.
    groups : list of RowGroup
        All rows, each in one group.
    """

    usual: NDArray[np.float64]
    levels: list[tuple[int, float]]
    groups: list[RowGroup]


def shared_noise(noise: NDArray[np.float64]) -> SharedNoise:
    """Find what repeats in noises (n, C).

    >>> shared = shared_noise(np.array([[9.0, 1.0], [9.0, 1.0], [2.0, 1.0]]))
    >>> shared.usual, shared.levels
    (array([9., 1.]), [(0, 2.0)])
    >>> [(group.rows.tolist(), group.levels) for group in shared.groups]
    [([0, 1], ()), ([2], (0,))]
    """
    n, C = noise.shape
    usual = np.empty(C)
    levels: list[tuple[int, float]] = []
    # Position of the level plus one; 0 is the usual noise and -1 - c a varying one.
    codes = np.zeros((n, C), dtype=np.int64)
    for c in range(C):
        values, inverse, counts = np.unique(noise[:, c], return_inverse=True, return_counts=True)
        most = int(counts.argmax())
        usual[c] = values[most]
        if len(values) - 1 > MAX_LEVELS:
            codes[:, c] = np.where(inverse == most, 0, -1 - c)
            continue
        others = np.delete(np.arange(len(values)), most)
        of_value = np.zeros(len(values), dtype=np.int64)
        of_value[others] = len(levels) + 1 + np.arange(len(others))
        levels += [(c, float(values[v])) for v in others]
        codes[:, c] = of_value[inverse]
    patterns, group_of = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(group_of.ravel(), kind="stable")
    bounds = np.cumsum(np.bincount(group_of.ravel()))[:-1]
    groups = [
        RowGroup(rows, tuple(int(k) - 1 for k in code if k > 0), tuple(-1 - int(k) for k in code if k < 0))
        for rows, code in zip(np.split(order, bounds), patterns, strict=True)
    ]
    return SharedNoise(usual, levels, groups)
