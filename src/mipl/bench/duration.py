"""Time spans in words, for the display of a run and for the status of a store."""

from __future__ import annotations

__all__ = ["duration"]


def duration(seconds: float) -> str:
    """Write a time span.

    >>> duration(5), duration(95), duration(7300)
    ('5 s', '1 min 35 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
