"""The plan of a data set before it has any features: labels, sizes, positive slots, false positive labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.datasets.synthesis.randomness import shuffled, uniforms
from mipl.errors import DataError

__all__ = ["Layout", "add_false_positives", "lay_out"]


class Layout(NamedTuple):
    """m bags over n instance slots, every bag with one label and at least one positive slot."""

    labels: NDArray[np.int64]  #: (m,) class index of each bag
    offsets: NDArray[np.int64]  #: (m + 1,)
    positive: NDArray[np.bool_]  #: (n,) slots of the bag's own class; all others are negative


def lay_out(
    n_bags: int, n_classes: int, sizes: tuple[int, int], mean_size: float | None, positive: float, seed: int
) -> Layout:
    """Plan `n_bags` bags with equally many of each class, in random order.

    The sizes follow a distribution that is uniform below and uniform above `mean_size`, with as much weight on either
    side as gives that mean. They are its m evenly spaced quantiles, in random order, so that for every seed the
    smallest and the largest size occur and the mean is met. The number of positives is the share `positive` of the
    size, rounded up or down so that the total is met as well, and at least one.
    """
    low, high = sizes
    mean = (low + high) / 2 if mean_size is None else float(mean_size)
    if n_classes < 2:
        raise DataError(f"{n_classes} target class(es); there must be at least two to tell apart")
    if n_bags < n_classes or n_bags % n_classes:
        raise DataError(f"n_bags={n_bags} is no multiple of the {n_classes} classes; each gets equally many bags")
    if not 1 <= low <= mean <= high:
        raise DataError(f"bag sizes {low} to {high} with mean {mean:g}: need 1 <= smallest <= mean <= largest")
    if not 0 < positive <= 1:
        raise DataError(f"positive={positive}; the share of positive instances lies in (0, 1]")
    upper = (mean - low) / (high - low) if high > low else 0.0
    quantiles = np.interp(np.linspace(0, 1, n_bags), [0, 1 - upper, 1], [low, mean, high])
    bag_sizes = shuffled(seed, "bag sizes", _round_keeping_sum(quantiles).clip(low, high))
    labels = shuffled(seed, "bag labels", np.repeat(np.arange(n_classes), n_bags // n_classes))
    n_positive = np.maximum(_round_keeping_sum(positive * bag_sizes), 1)

    offsets = np.concatenate([[0], np.cumsum(bag_sizes)])
    bag = np.repeat(np.arange(n_bags), bag_sizes)
    # Positive slots are a random subset of each bag: rank the slots inside their bag by a random key.
    order = np.lexsort((uniforms(seed, "positive slots", offsets[-1]), bag))
    rank = np.empty(offsets[-1], dtype=np.int64)
    rank[order] = np.arange(offsets[-1]) - offsets[bag]
    return Layout(labels, offsets, rank < n_positive[bag])


def add_false_positives(labels: NDArray[np.int64], n_classes: int, r: int, seed: int) -> NDArray[np.bool_]:
    """Candidate mask (m, q): the true label and r others, uniformly and without replacement.

    Each bag has one random order of the other classes and takes the first r, so that the candidates at r + 1 contain
    those at r.
    """
    if not 0 <= r < n_classes:
        raise DataError(f"r={r}; with {n_classes} classes a bag can have 0 to {n_classes - 1} false positive labels")
    rows = np.arange(len(labels))
    keys = uniforms(seed, "false positive labels", (len(labels), n_classes))
    keys[rows, labels] = -1
    mask = np.zeros((len(labels), n_classes), dtype=bool)
    mask[rows[:, None], np.argsort(keys, axis=1, kind="stable")[:, : r + 1]] = True
    return mask


def _round_keeping_sum(values: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Round each number up or down so that every running sum is right to within one half."""
    return np.diff(np.floor(np.cumsum(values) + 0.5), prepend=0).astype(np.int64)
