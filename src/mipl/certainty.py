"""From which probability on an answer is called sure, and below which doubtful; tables and pages agree on it."""

from __future__ import annotations

import math

__all__ = ["DOUBTFUL", "SURE", "verdict"]

SURE, DOUBTFUL = 0.95, 0.7
#: Standard errors above zero from which held-out candidate sets count as more probable than by chance.
_CLEARLY = 2.0


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
