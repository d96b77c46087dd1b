"""Sources into groups: which recordings may meet in a bag, so that a split between groups shares none of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipl.datasets.synthesis.randomness import uniforms

__all__ = ["group_sources"]


def group_sources(sources: NDArray[np.int64], kinds: NDArray[np.int64], n_groups: int, seed: int) -> NDArray[np.int64]:
    """Spread whole sources over groups so that every kind of instance is spread as evenly as they allow.

    Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011): sources that hold the rarest kind are placed first,
    those with most of it before the others, each into the group that has least of that kind so far.

    Parameters
    ----------
    sources : (n,) int from 0
        The source of each instance.
    kinds : (n,) int from 0
        The class of each instance, negatives included.
    n_groups : int
        How many groups are made.
    seed : int
        Decides which sources meet in a group.

    Returns
    -------
    groups : (n,) int
        The group of each instance; those of one source are in one group.
    """
    counts = np.zeros((sources.max() + 1, kinds.max() + 1), dtype=np.int64)
    np.add.at(counts, (sources, kinds), 1)
    rarity = np.argsort(np.argsort(counts.sum(axis=0), kind="stable"), kind="stable")
    rarest = np.where(counts > 0, rarity, len(rarity)).argmin(axis=1)
    most = counts[np.arange(len(counts)), rarest]
    order = np.lexsort((uniforms(seed, "order of sources", len(counts)), -most, rarity[rarest]))

    filled = np.zeros((n_groups, counts.shape[1]), dtype=np.int64)
    group = np.empty(len(counts), dtype=np.int64)
    for source in order:
        fullness = filled[:, rarest[source]], filled.sum(axis=1)
        group[source] = np.lexsort(fullness[::-1])[0]
        filled[group[source]] += counts[source]
    return group[sources]
