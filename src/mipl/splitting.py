"""Random splits of bags that are the same on every machine, by bag or by group of bags."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError, ParameterError

__all__ = ["split_groups", "split_order", "train_count"]


def split_order(m: int, seed: int, groups: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """A random order of m bags whose every prefix is a random sample, balanced over `groups` if given.

    The order sorts PCG64's uniform doubles, which NumPy keeps stable across versions (it does not promise this for
    `Generator.permutation`).
    """
    keys = np.random.Generator(np.random.PCG64(seed)).random(m)
    if groups is None:
        return np.argsort(keys, kind="stable")
    quantile = np.empty(m)
    for g in np.unique(groups):
        member = np.flatnonzero(groups == g)
        quantile[member[np.argsort(keys[member], kind="stable")]] = (np.arange(len(member)) + 0.5) / len(member)
    return np.lexsort((keys, quantile))


def split_groups(groups: NDArray[np.int64], k: int, seed: int) -> NDArray[np.bool_]:
    """Which bags (m,) to train on: whole groups in random order, as many as bring their number nearest to k."""
    names, sizes = np.unique(groups, return_counts=True)
    if len(names) < 2:
        raise DataError("all bags are of one group, so there is nothing to split; pass groups=None to ignore them")
    order = split_order(len(names), seed)
    taken = 1 + int(np.argmin(np.abs(np.cumsum(sizes[order])[:-1] - k)))
    return np.isin(groups, names[order[:taken]])


def train_count(m: int, train_size: float | int) -> int:
    """The number of training bags of m that a share or a number stands for."""
    if isinstance(train_size, bool) or not isinstance(train_size, Real) or not np.isfinite(train_size):
        raise ParameterError(f"train_size={train_size!r}; pass a share in (0, 1) or a number of bags")
    k = int(train_size) if isinstance(train_size, Integral) else round(m * float(train_size))
    if not 0 < k < m:
        raise ParameterError(f"train_size={train_size} leaves {k} training bags of {m}; both sides need at least one")
    return k
