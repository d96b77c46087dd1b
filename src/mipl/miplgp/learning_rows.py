"""The instances that the subset engine learns from: those of some bags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["learning_rows"]


def learning_rows(bags: Bags, seed: int, n_rows: int) -> NDArray[np.int64]:
    """The instances (k,) of random whole bags, until there are `n_rows`; all where there are no more than that.

    >>> learning_rows(Bags.from_list([[[0.0]] * 3, [[1.0]] * 3, [[2.0]] * 3]), seed=0, n_rows=4)
    array([3, 4, 5, 6, 7, 8])
    """
    order = np.random.default_rng([seed, 3]).permutation(len(bags))
    enough = np.searchsorted(np.cumsum(bags.sizes[order]), n_rows) + 1
    return np.flatnonzero(np.isin(bags.bag_of_instance, order[:enough]))
