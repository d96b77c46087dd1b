"""How numbers are written in the page."""

from __future__ import annotations

__all__ = ["percent"]


def percent(share: float) -> str:
    r"""A percentage with one decimal at most, which never rounds to a certainty that it is not.

    >>> [percent(share).replace("\u00a0", " ") for share in (0.9999, 1.0, 0.974, 0.0001, 0.0)]
    ['over 99.9 %', '100 %', '97.4 %', 'under 0.1 %', '0 %']
    """
    if 0.9995 <= share < 1:
        return "over\u00a099.9\u00a0%"
    if 0 < share < 0.0005:
        return "under\u00a00.1\u00a0%"
    return f"{100 * share:.1f}".removesuffix(".0") + "\u00a0%"
