"""The verdict in words: how many bags are resolved, how sure that is, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from mipl.report.certainty import DOUBTFUL, SURE, known_right, levels
from mipl.report.numbers import percent

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["Verdict", "verdict_of"]

_UNLIKELY = 0.025


@dataclass(frozen=True)
class Verdict:
    """A headline, what it rests on, and how far to trust it."""

    headline: str
    made: str
    expected: str
    trust: str


def verdict_of(resolution: Resolution, trust: str | None = None) -> Verdict:
    """Say what was found.

    Parameters
    ----------
    resolution : Resolution
        The answers about m bags.
    trust : str or None, default=None
        How far the answers can be trusted, where somebody knows; known true labels are told after it. None: these
        alone, or that there are none.
    """
    m, probability = len(resolution), resolution.probability
    count = levels(probability)
    mistakes = float(np.sum(1 - probability))
    among = (
        f"among all {len(resolution.classes)} classes"
        if resolution.candidates is None
        else f"among its candidates, {resolution.candidates.sum(axis=1).mean():.3g} on average"
    )
    return Verdict(
        headline=f"{_bags(m)} {'labelled' if resolution.candidates is None else 'resolved'}: {_headline(count.sure, m)}"
        + (f", {count.doubtful:,} {'is' if count.doubtful == 1 else 'are'} doubtful." if count.doubtful else "."),
        made=f"{resolution.method or 'The model'} chose the most probable label of each bag {among}. An answer is "
        f"called sure from {percent(SURE)} on, and doubtful below {percent(DOUBTFUL)}.",
        expected=f"By its own probabilities {percent(1 - mistakes / m)} of the labels are right; "
        f"{_about(mistakes)} of {m:,} would be wrong.",
        trust=_trust(resolution) if trust is None else f"{trust} {_against_truth(resolution)}".rstrip(),
    )


def _headline(sure: int, m: int) -> str:
    if sure == m:
        return "every answer is sure"
    return f"{sure:,} {'answer is' if sure == 1 else 'answers are'} sure" if sure else "no answer is sure"


def _trust(resolution: Resolution) -> str:
    return _against_truth(resolution) or (
        "No true label is known here, so these probabilities are the model's own word. "
        "Look at some of the bags below, doubtful ones first, before you rely on them."
    )


def _against_truth(resolution: Resolution) -> str:
    """What the known true labels say; nothing where there are none."""
    known, right = known_right(resolution)
    n = int(known.sum())
    if n == 0:
        return ""
    promised = min(float(resolution.probability[known].mean()), 1.0)
    wrong = n - int(right.sum())
    said = f"Of the {_bags(n)} whose true label is known, {percent(1 - wrong / n)} have the right one. "
    # How likely so many, or so few, mistakes are if the probabilities are right.
    if binom.sf(wrong - 1, n, 1 - promised) < _UNLIKELY:
        return said + f"The probabilities promise {percent(promised)}: take them as too optimistic."
    if binom.cdf(wrong, n, 1 - promised) < _UNLIKELY:
        return said + f"The probabilities promise only {percent(promised)}: they are more careful than they need to be."
    return said + f"The probabilities promise {percent(promised)}, and nothing here speaks against them."


def _bags(m: int) -> str:
    return f"{m:,} bag" if m == 1 else f"{m:,} bags"


def _about(mistakes: float) -> str:
    return "fewer than one" if mistakes < 0.95 else f"about {mistakes:,.0f}"
