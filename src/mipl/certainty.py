"""How sure an answer is: which labels stay plausible, and from which probability on it is called sure or doubtful."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["COVERAGE", "DOUBTFUL", "SURE", "level_for", "levels_of_coverage", "plausible_labels", "verdict"]

#: How often the true label is among those that tables and pages call plausible.
COVERAGE = 0.9

SURE, DOUBTFUL = 0.95, 0.7
#: Standard errors above zero from which held-out candidate sets count as more probable than by chance.
_CLEARLY = 2.0
#: Coverages at which `levels_of_coverage` tells the level.
_COVERAGES = np.arange(1, 100) / 100


def plausible_labels(posterior: NDArray[np.floating], level: float) -> NDArray[np.bool_]:
    """The most probable labels (m, q) of each bag, as long as those before them hold less than `level` together.

    >>> plausible_labels(np.array([[0.7, 0.2, 0.1], [0.95, 0.05, 0.0]]), 0.85).tolist()
    [[True, True, False], [True, False, False]]
    """
    order = np.argsort(-posterior, axis=1, kind="stable")
    ranked = np.take_along_axis(posterior, order, axis=1)
    plausible = (np.cumsum(ranked, axis=1) - ranked < level) & (ranked > 0)
    plausible[:, 0] = True
    mask = np.zeros(posterior.shape, dtype=bool)
    np.put_along_axis(mask, order, plausible, axis=1)
    return mask


def levels_of_coverage(
    unseen: NDArray[np.floating], posterior: NDArray[np.floating], weight: NDArray[np.floating] | None = None
) -> NDArray[np.float64]:
    """The levels (99,) at which plausible labels hold the true one in 1 to 99 % of the bags.

    Parameters
    ----------
    unseen : (m, q)
        Probabilities of the labels by models that have not seen the bag.
    posterior : (m, q)
        The same with the bag's candidates: what is known of the true label.
    weight : (m,), default=None
        How often each bag counts; None for once.
    """
    order = np.argsort(-unseen, axis=1, kind="stable")
    ranked = np.take_along_axis(unseen, order, axis=1)
    before = (np.cumsum(ranked, axis=1) - ranked).ravel()
    mass = np.take_along_axis(posterior if weight is None else posterior * weight[:, None], order, axis=1).ravel()
    ascending = np.argsort(before, kind="stable")
    covered = np.cumsum(mass[ascending]) / mass.sum()
    reached = np.minimum(np.searchsorted(covered, _COVERAGES), len(before) - 1)
    levels: NDArray[np.float64] = np.nextafter(before[ascending][reached], 2.0)
    return levels


def level_for(levels: NDArray[np.float64], coverage: float) -> float:
    """The level for a coverage, between those of `levels_of_coverage`."""
    return float(np.interp(coverage, [*_COVERAGES, 1.0], [*levels, 2.0]))


def verdict(m: int, doubtful: int, outside: int, label_free: tuple[float, float] | None) -> str:
    """How far the answers for m bags can be trusted, in words.

    Parameters
    ----------
    m : int
        The number of bags.
    doubtful : int
        Bags that deserve a second look.
    outside : int
        Those among them whose label is not among their candidates.
    label_free : (float, float) or None
        The score of held-out candidate sets above chance, and its standard error.
    """
    threshold = f"{100 * DOUBTFUL:.0f} %"
    look = f"Every label is at least {threshold} probable."
    if doubtful:
        verb, whose = ("deserves", "its") if doubtful == 1 else ("deserve", "their")
        look = f"{doubtful:,} of {m:,} bags {verb} a second look: {whose} label is less than {threshold} probable"
        look += f", or not among {whose} candidates ({outside:,})." if outside else "."
    if label_free is None:
        return look
    score, error = label_free
    times = f"{math.exp(score):.2g} times"
    figures = (
        f"candidate sets of held-out bags were {'just' if times == '1 times' else times} as probable as by chance "
        f"({round(score, 2) + 0.0:+.2f} ± {error:.2f} nats per bag)"
    )
    if score > _CLEARLY * error:
        return f"The instances tell something about the labels: {figures}. {look}"
    return (
        f"The instances were NOT found to tell anything about the labels: {figures}. Take the answers for guesses "
        f"within the candidate sets. {look}"
    )
