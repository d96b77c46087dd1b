"""One progress bar for long work, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

__all__ = ["track"]


def track(items: Iterable[T], description: str, *, total: int | None = None, verbose: bool = True) -> Iterator[T]:
    """Iterate over `items` with a progress bar on standard error; without one where that is not a terminal.

    Parameters
    ----------
    items : iterable
        What to iterate over; items are taken as they are used.
    description : str
        Stands before the bar.
    total : int, default=None
        How many items there are; None: ``len(items)`` where it has a length.
    verbose : bool, default=True
        Whether to show a bar at all.
    """
    if not (verbose and sys.stderr.isatty()):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    yield from rich_track(items, description, total=total, console=Console(stderr=True), transient=True)
