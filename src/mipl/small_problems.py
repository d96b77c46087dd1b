"""Small synthetic problems that every method solves in a moment, for checks and tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset

__all__ = ["small_dataset", "small_problem"]


def small_problem(
    q: int = 3, m: int = 24, d: int = 4, seed: int = 7
) -> tuple[Bags, NDArray[np.bool_], NDArray[np.int64]]:
    """Make m bags of 1 to 5 instances, some near the class centre, the rest around the origin; two candidates each.

    Parameters
    ----------
    q : int, default=3
        Number of classes, at most d.
    m : int, default=24
        Number of bags.
    d : int, default=4
        Number of features.
    seed : int, default=7
        Of all that is random.

    Returns
    -------
    bags : Bags
    candidates : (m, q) bool
    labels : (m,) int
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(m) % q
    candidates = np.zeros((m, q), dtype=bool)
    candidates[np.arange(m), labels] = True
    candidates[np.arange(m), (labels + rng.integers(1, q, m)) % q] = True
    bags = []
    for label in labels:
        size = rng.integers(1, 6)
        bag = 0.3 * rng.standard_normal((size, d))
        bag[: rng.integers(1, size + 1), label] += 2.0
        bags.append(bag.astype(np.float32))
    return Bags.from_list(bags), candidates, labels


def small_dataset() -> MIPLDataset:
    """The `small_problem` as a data set with names: of classes (not in alphabetical order), of features and of bags."""
    bags, candidates, labels = small_problem()
    return MIPLDataset(
        Bags(bags.instances, bags.offsets, feature_names=["width", "height", "weight", "age"]),
        candidates,
        labels=labels,
        classes=["cat", "ant", "bee"],
        bag_ids=[f"animal-{i}" for i in range(len(bags))],
    )
