"""What a run shows while it works: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from mipl.bench.duration import duration
from mipl.bench.execution.executor import Executor
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.visible_text import visible

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "SilentDisplay", "display_for"]


class Display(Protocol):
    """What a run tells of."""

    def begin(self, total: int, names: Mapping[str, str], executor: Executor) -> None: ...  # noqa: D102
    def started(self, cell: Cell) -> None: ...  # noqa: D102
    def finished(self, cell: Cell, outcome: Outcome) -> None: ...  # noqa: D102
    def settled_elsewhere(self, cell: Cell) -> None: ...  # noqa: D102
    def stop(self) -> None: ...  # noqa: D102
    def end(self, failed: int) -> None: ...  # noqa: D102


class Tally:
    """Counts of cells, and an estimate of the time left."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = 0
        self.names: Mapping[str, str] = {}
        self.running: set[str] = set()
        self._start = time.monotonic()
        self._ran = self._todo = 0

    def begin(self, total: int, names: Mapping[str, str], executor: Executor) -> None:
        """Start with some of `total` cells to run, of which `names` has the name by the key."""
        self.names, self.total, self._todo = names, total, len(names)
        self.done = total - len(names)

    def started(self, cell: Cell) -> None:
        """Count a cell as running."""
        self.running.add(cell.key)

    def finished(self, cell: Cell, outcome: Outcome) -> None:
        """Count a cell as done or failed."""
        self.running.discard(cell.key)
        self._ran += 1
        self.done += 1
        self.failed += bool(outcome.error)

    def settled_elsewhere(self, cell: Cell) -> None:
        """Count a cell that another run has finished."""
        self.done += 1
        self._todo -= 1

    def stop(self) -> None:
        """Leave the screen as it should stay, also when the run was interrupted."""

    def seconds_left(self) -> float | None:
        """Time left if the remaining cells take as long as this run's cells so far; None before the first."""
        if not self._ran:
            return None
        return (time.monotonic() - self._start) / self._ran * (self._todo - self._ran)


class SilentDisplay(Tally):
    """Nothing at all."""

    def end(self, failed: int) -> None:
        """Say nothing."""


class PlainDisplay(Tally):
    """One line for each finished cell, for logs and pipes."""

    def begin(self, total: int, names: Mapping[str, str], executor: Executor) -> None:
        """Say what is to do."""
        super().begin(total, names, executor)
        todo = len(names)
        self._say(f"cells: {total} in all, {total - todo} finished before, {todo} to run on {executor.description}")

    def finished(self, cell: Cell, outcome: Outcome) -> None:
        """Say what a cell gave."""
        super().finished(cell, outcome)
        what = outcome.error.splitlines()[0] if outcome.error else _summary(outcome)
        self._say(f"[{self.done}/{self.total}] {self.names[cell.key]}: {what}; {_left(self.seconds_left())}")

    def end(self, failed: int) -> None:
        """Say how it ended."""
        self._say(_closing(self.done, self.total, failed))

    def _say(self, line: str) -> None:
        print(visible(line), file=sys.stderr, flush=True)


class LiveDisplay(Tally):
    """A bar with cells done, running, failed and the time left; failures stay on the screen."""

    _progress: Any = None

    def begin(self, total: int, names: Mapping[str, str], executor: Executor) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        super().begin(total, names, executor)
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("[bold]cells"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=self._console,
        )
        self._task = self._progress.add_task("", total=total, completed=self.done)
        told = visible(f"{len(names)} of {total} cells to run on {executor.description}")
        self._console.print(told, markup=False, highlight=False)
        self._progress.start()

    def started(self, cell: Cell) -> None:
        """Show a cell among the running."""
        super().started(cell)
        self._draw()

    def finished(self, cell: Cell, outcome: Outcome) -> None:
        """Move the bar."""
        super().finished(cell, outcome)
        if outcome.error:
            self._progress.console.print(
                visible(f"failed: {self.names[cell.key]}: {outcome.error.splitlines()[0]}"),
                markup=False,
                highlight=False,
            )
        self._draw()

    def settled_elsewhere(self, cell: Cell) -> None:
        """Move the bar."""
        super().settled_elsewhere(cell)
        self._draw()

    def stop(self) -> None:
        """Let go of the terminal."""
        if self._progress is not None:
            self._progress.stop()

    def end(self, failed: int) -> None:
        """Say how it ended."""
        print(_closing(self.done, self.total, failed), file=sys.stderr)

    def _draw(self) -> None:
        text = f"{len(self.running)} running, {self.failed} failed, {_left(self.seconds_left())}"
        self._progress.update(self._task, completed=self.done, description=text)


def display_for(stream_is_terminal: bool) -> LiveDisplay | PlainDisplay:
    """The display that suits the standard error stream."""
    return LiveDisplay() if stream_is_terminal else PlainDisplay()


def _summary(outcome: Outcome) -> str:
    accuracy = outcome.scores["accuracy"]
    return f"accuracy {accuracy:.3f}, fit {outcome.fit_seconds:.2f} s, memory {outcome.memory_mib:.0f} MiB"


def _left(seconds: float | None) -> str:
    return "time left unknown" if seconds is None else f"{duration(seconds)} left"


def _closing(done: int, total: int, failed: int) -> str:
    if total == 0:
        return "nothing to run: every cell has finished before" + (f", {failed} of them failed" if failed else "")
    if not failed:
        return f"{done} of {total} cells finished"
    return f"{done} of {total} cells finished, {failed} of them failed; `mipl bench status` says why"
