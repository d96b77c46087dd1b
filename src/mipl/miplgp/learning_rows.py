"""The instances that the subset engine learns from: some neighbourhoods, in which instances lie as close as in all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["learning_rows"]

# Instances of a neighbourhood. Smaller ones have more instances at their border, whose neighbours are left out.
NEIGHBOURHOOD = 1000


def learning_rows(
    X: NDArray[np.floating], seed: int, n_rows: int, neighbourhood: int = NEIGHBOURHOOD
) -> NDArray[np.int64]:
    """The rows (k,) of X next to random rows, until there are `n_rows`; all where there are no more than that.

    Random instances, or those of random bags, lie farther apart than all of them do, and lead to longer lengthscales
    the fewer they are.

    Parameters
    ----------
    X : (n, d) array
        The training instances.
    seed : int
        Seed of the random rows.
    n_rows : int
        Rows wanted, at least.
    neighbourhood : int, default=1000
        Rows that are taken around each random one, itself included.

    Examples
    --------
    >>> learning_rows(np.arange(9.0)[:, None], seed=0, n_rows=4, neighbourhood=3)
    array([3, 4, 5, 6, 7, 8])
    """
    if len(X) <= n_rows:
        return np.arange(len(X))
    taken = np.zeros(len(X), dtype=bool)
    for centre in np.random.default_rng([seed, 3]).permutation(len(X)):
        if taken.sum() >= n_rows:
            break
        if not taken[centre]:
            distances = np.square(X - X[centre]).sum(axis=1)
            taken[np.argsort(distances, kind="stable")[: min(neighbourhood, n_rows)]] = True
    return np.flatnonzero(taken)
