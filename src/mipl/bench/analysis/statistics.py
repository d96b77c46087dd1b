"""The statistics of the paper's tables: means and deviations, paired t-tests, and average ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEWEST_SPLITS", "Comparison", "Spread", "average_ranks", "compare", "critical_difference", "spread"]

#: Common splits that a paired test needs.
FEWEST_SPLITS = 3

Verdict = Literal["win", "tie", "loss", "untested"]


@dataclass(frozen=True)
class Comparison:
    """A reference method against another one: its verdict, the p-value and the number of splits that both have."""

    verdict: Verdict
    p: float
    n: int


@dataclass(frozen=True)
class Spread:
    """Values of a score over splits: their number, mean, sample standard deviation (n - 1), and extremes.

    NaN where a figure is not defined: all of them for no values, the standard deviation for one.
    """

    n: int
    mean: float
    std: float
    lowest: float
    highest: float


def spread(values: Iterable[float | None]) -> Spread:
    """Summarise the values that are known: neither None nor NaN.

    >>> spread([0.5, None, 0.75]).mean
    0.625
    """
    known = np.array([value for value in values if value is not None and value == value])
    if not len(known):
        return Spread(0, *[float("nan")] * 4)
    std = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return Spread(len(known), float(known.mean()), std, float(known.min()), float(known.max()))


def compare(reference: Mapping[int, float], other: Mapping[int, float], level: float = 0.05) -> Comparison:
    r"""Test whether two methods differ, by a two-sided paired t-test over the splits that both have finished.

    With the n differences :math:`d_s` between the two accuracies on the same split,

    .. math:: t = \bar d \sqrt{n} / \hat\sigma_d, \qquad p = 2 P(T_{n-1} > |t|),

    the reference wins (loses) where :math:`p` is below `level` and :math:`\bar d` is positive (negative). Splits that
    only one of them has are left out. Fewer than three common splits are not tested: two differences that happen to be
    equal say nothing of their spread. Where the differences do not vary, equal scores are a tie (p = 1) and a constant
    non-zero difference is a certain one (p = 0), the limit of t.

    Parameters
    ----------
    reference, other : mapping
        Accuracy of the two methods by split.
    level : float, default=0.05
        Probability of a wrong verdict between equal methods.

    Examples
    --------
    >>> result = compare({0: 0.90, 1: 0.92, 2: 0.91}, {0: 0.80, 1: 0.83, 2: 0.80, 3: 0.5})
    >>> result.verdict, round(result.p, 4), result.n
    ('win', 0.0033, 3)
    """
    from scipy.stats import ttest_rel

    common = sorted(reference.keys() & other.keys())
    if len(common) < FEWEST_SPLITS:
        return Comparison("untested", float("nan"), len(common))
    a, b = (np.array([scores[s] for s in common]) for scores in (reference, other))
    difference = a - b
    # Accuracies are ratios of counts: what differs by less than this differs by rounding only.
    if np.ptp(difference) < 1e-12:
        p = 1.0 if abs(difference[0]) < 1e-12 else 0.0
    else:
        p = float(ttest_rel(a, b).pvalue)
    if p >= level:
        return Comparison("tie", p, len(common))
    return Comparison("win" if difference.mean() > 0 else "loss", p, len(common))


def average_ranks(accuracies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean rank (k,) of k methods over N problems (N, k); rank 1 is the best, ties share their mean rank.

    >>> average_ranks(np.array([[0.9, 0.8, 0.7], [0.6, 0.6, 0.5]]))
    array([1.25, 1.75, 3.  ])
    """
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(-accuracies, axis=1).mean(axis=0)
    return ranks


def critical_difference(k: int, n: int, level: float = 0.05) -> float:
    r"""The difference of average ranks from which two of k methods differ over n problems, by Nemenyi's test.

    .. math:: CD = q_{\alpha, k} \sqrt{k (k + 1) / (6 n)}

    with the studentized range quantile divided by :math:`\sqrt 2` (J. Demšar, JMLR 7, 2006).

    >>> round(critical_difference(k=5, n=30), 3)
    1.114
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))
