"""One progress bar for long work: on a terminal and in notebooks, nowhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["track"]

#: Seconds between two updates of the line in a notebook, which travels to a browser.
_PAUSE = 0.2


def track(items: Iterable[T], description: str, *, total: int | None = None, verbose: bool = True) -> Iterator[T]:
    """Iterate over `items` with a progress bar on a terminal's standard error, or one line in a notebook.

    Parameters
    ----------
    items : iterable
        What to iterate over; items are taken as they are used.
    description : str
        Stands before the bar.
    total : int, default=None
        How many items there are; None: ``len(items)`` where it has a length.
    verbose : bool, default=True
        Whether to show progress at all.
    """
    if not verbose:
        yield from items
    elif (display := _notebook_display()) is not None:
        yield from _track_in_notebook(items, description, total, display)
    elif not sys.stderr.isatty():
        yield from items
    else:
        from rich.console import Console
        from rich.progress import track as rich_track

        yield from rich_track(items, description, total=total, console=Console(stderr=True), transient=True)


def _notebook_display() -> Any:
    """IPython's `display` function where a notebook's kernel runs this code, else None; IPython is never imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return ipython.display.display if ipython is not None and getattr(shell, "kernel", None) is not None else None


def _track_in_notebook(items: Iterable[T], description: str, total: int | None, display: Any) -> Iterator[T]:
    """Show one line of plain text that is replaced, however many items there are."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    start = shown = time.monotonic()
    handle = display(_line(description, 0, total, 0.0), raw=True, display_id=True)
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            now = time.monotonic()
            if now - shown >= _PAUSE:
                shown = now
                handle.update(_line(description, done, total, now - start), raw=True)
    finally:  # also where the loop was left or broken off: the line says how far it came
        handle.update(_line(description, done, total, time.monotonic() - start), raw=True)


def _line(description: str, done: int, total: int | None, seconds: float) -> dict[str, str]:
    of = f"{done:,}" if total is None else f"{done:,} of {total:,} ({done / max(total, 1):.0%})"
    left = f", about {seconds / done * (total - done):.0f} s left" if total and 0 < done < total else ""
    return {"text/plain": f"{description}: {of}, {seconds:.0f} s{left}"}
