"""Names in pictures: no mathematics, no control characters, and never wider than their place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mipl.visible_text import shortened, visible

__all__ = ["fitted", "listed", "width_of"]

_POINTS = 72  # of an inch


@lru_cache(maxsize=4096)
def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Inches that a text takes in matplotlib's own font of this size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size, weight=weight), False)
    return float(width) / _POINTS


def fitted(text: str, width: float, size: float, weight: str = "normal") -> str:
    """A text made visible and, where it is wider than `width` inches, shortened in its middle."""
    shown = visible(text)
    if width_of(shown, size, weight) <= width:
        return shown
    low, high = 1, len(shown)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if width_of(shortened(shown, middle), size, weight) <= width else (low, middle)
    return shortened(shown, low)


def listed(names: Sequence[str], width: float, size: float, most: int) -> str:
    """Names with commas between them, at most `most` and as many as fit into `width` inches, and how many more."""
    for shown in range(min(most, len(names)), 0, -1):
        more = f", and {len(names) - shown} more" if shown < len(names) else ""
        text = visible(", ".join(names[:shown])) + more
        if width_of(text, size) <= width:
            return text
    return fitted(names[0], width - width_of(more, size), size) + more
