"""How numbers are written in the page."""

from __future__ import annotations

__all__ = ["percent", "short_count"]


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


def short_count(number: int) -> str:
    """A count in at most five characters, for places where there is no room for more.

    >>> [short_count(number) for number in (12, 9_999, 12_345, 99_960, 1_234_567, 123_456_789)]
    ['12', '9,999', '12.3k', '100k', '1.2M', '123M']
    """
    for unit, one in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if number < 10_000:
            return f"{number:,}"
        if round(number / one, 1) < 1000:
            return f"{number / one:.1f}".removesuffix(".0")[:4].removesuffix(".") + unit
    return f"{number:.0e}"
