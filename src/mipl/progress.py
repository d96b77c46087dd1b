"""Progress of long work: on a terminal and in notebooks, nowhere else.

It is shown by the main thread of the main process alone: where several fits run at a time, as in a search over
parameters with `n_jobs`, their bars would be written into each other.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["SILENT", "Phases", "show_phases", "track"]

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
    if not (verbose and _alone()):
        yield from items
    elif (display := _notebook_display()) is not None:
        yield from _track_in_notebook(items, description, total, display)
    elif not sys.stderr.isatty():
        yield from items
    else:
        from rich.console import Console
        from rich.progress import track as rich_track

        yield from rich_track(items, description, total=total, console=Console(stderr=True), transient=True)


class Phases:
    """Told by a long computation what it does; shows it, if anybody wants to see it.

    Parameters
    ----------
    show : callable, default=None
        Called with a text, the steps done and all steps, None where their number is not known.
    prefix : str, default=""
        Stands before the name of every phase.

    Examples
    --------
    >>> progress = Phases(print).within("fold 2 of 4")
    >>> progress("likelihood", 3, 80)
    fold 2 of 4, likelihood 3 80
    """

    def __init__(self, show: Callable[[str, int, int | None], None] | None = None, prefix: str = "") -> None:
        self._show = show
        self._prefix = prefix

    def __call__(self, phase: str, done: int = 0, total: int | None = None) -> None:
        """Say which phase it is in, and how many of its steps are done."""
        if self._show is not None:
            self._show(self._prefix + phase, done, total)

    def counting(self, phase: str, before: int, total: int) -> Callable[[int], None]:
        """What takes the number of steps since the first `before` of them and says how far the phase is."""
        self(phase, before, total)
        return lambda done: self(phase, before + done, total)

    def within(self, part: str) -> Phases:
        """The same, for the phases of a part of the work."""
        return Phases(self._show, f"{self._prefix}{part}, ")


#: Nobody wants to see it.
SILENT = Phases()


@contextmanager
def show_phases(title: str, *, verbose: bool = True) -> Iterator[Phases]:
    """Show what is told to the `Phases`: one line with a bar on a terminal's standard error, or one in a notebook.

    Parameters
    ----------
    title : str
        Stands before the phases.
    verbose : bool, default=True
        Whether to show progress at all.
    """
    if not (verbose and _alone()):
        yield SILENT
    elif (display := _notebook_display()) is not None:
        with _phases_in_notebook(title, display) as phases:
            yield phases
    elif not sys.stderr.isatty():
        yield SILENT
    else:
        with _phases_on_terminal(title) as phases:
            yield phases


@contextmanager
def _phases_on_terminal(title: str) -> Iterator[Phases]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def show(phase: str, done: int, total: int | None) -> None:
            bar.update(task, description=f"{title}: {phase}", completed=done)
            bar.tasks[0].total = total  # `update` would leave the total of the phase before where this one has none

        yield Phases(show)


@contextmanager
def _phases_in_notebook(title: str, display: Any) -> Iterator[Phases]:
    """Show one line of plain text that is replaced, however many phases and steps there are."""
    start = shown = time.monotonic()
    last = "start"

    def line(text: str) -> dict[str, str]:
        return {"text/plain": f"{title}: {text}, {time.monotonic() - start:.0f} s"}

    handle = display(line(last), raw=True, display_id=True)

    def show(phase: str, done: int, total: int | None) -> None:
        nonlocal last, shown
        last = phase if total is None else f"{phase} {done:,} of {total:,}"
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            handle.update(line(last), raw=True)

    try:
        yield Phases(show)
    except BaseException:
        handle.update(line(f"stopped at {last}"), raw=True)
        raise
    handle.update(line("done"), raw=True)


def _alone() -> bool:
    """Whether this is the main thread of the main process, so that nobody else writes a bar at the same time."""
    return threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None


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
