"""Run a suite into a store: start or go on where it stopped."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import mipl
from mipl.bench.cell import Cell, Outcome
from mipl.bench.cell_process import Limits, usable_cpus
from mipl.bench.display import Display, PlainDisplay
from mipl.bench.store import Store
from mipl.bench.suite import Suite
from mipl.bench.suite_file import load_suite

__all__ = ["Executor", "run", "run_cells"]

#: How often a run that has nothing left of its own looks whether another run has finished or died.
_POLL_SECONDS = 0.25


class Executor(Protocol):
    """Where cells run. `slots` is how many to hand out at a time."""

    description: str

    @property
    def slots(self) -> int: ...  # noqa: D102
    def submit(self, cell: Cell) -> None: ...  # noqa: D102
    def next_finished(self, timeout: float) -> tuple[Cell, Outcome] | None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


def run(
    suite: Suite | str | Path,
    store: str | Path = "bench.sqlite",
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    retry_failed: bool = False,
    any_code: bool = False,
    display: Display | None = None,
) -> int:
    """Run what a suite still lacks, and give the number of its cells that have failed.

    Parameters
    ----------
    suite : Suite, or its name or file
    store : str or Path
        The SQLite file of results. Any number of runs may share it.
    jobs : int
        Worker processes on this machine.
    scheduler : str, optional
        Address of a Dask scheduler; cells then run on its cluster and `jobs` does not count.
    time_limit, memory_limit : float, optional
        Seconds of fit and prediction, and MiB of memory, after which a cell is stopped and recorded as failed.
    retry_failed : bool
        Run cells again that have failed before.
    any_code : bool
        Take results made by another version of the code as finished.
    """
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    limits = Limits(time_limit, memory_limit)
    cells = list({cell.key: cell for cell in suite.cells().values()}.values())
    shown = display or PlainDisplay()
    with Store(store) as opened:
        states = opened.states(any_code=any_code)
        settled = {"done"} if retry_failed else {"done", "failed"}
        todo = [cell for cell in cells if _state(cell, states, any_code) not in settled]
        if todo:
            executor = _executor(jobs, scheduler, limits)
            try:
                run_cells(todo, opened, executor, shown, total=len(cells), retry_failed=retry_failed)
            finally:
                executor.close()
                shown.stop()
            states = opened.states(any_code=any_code)
    failed = sum(_state(cell, states, any_code) == "failed" for cell in cells)
    shown.end(failed)
    return failed


def run_cells(
    cells: Sequence[Cell], store: Store, executor: Executor, display: Display, *, total: int, retry_failed: bool = False
) -> None:
    """Claim cells one by one, run them, and write each outcome as it comes.

    One transaction writes an outcome and claims the next cell. Cells that another run holds come last: they are
    looked at again until that run has finished them, or has died.
    """
    waiting, elsewhere = deque(cells), deque[Cell]()
    flying = 0
    store.begin_run(environment())
    display.begin(total, len(cells), executor)
    finished: tuple[Cell, Outcome] | None = None
    while True:
        flying -= finished is not None
        free = executor.slots - flying  # asks the cluster, so not while the store is locked
        with store.transaction():
            if finished is not None:
                store.finish(*finished)
            claimed = _claim(store, waiting, elsewhere, free, retry_failed, display)
        if finished is not None:
            display.finished(*finished)
        for cell in claimed:
            executor.submit(cell)
            display.started(cell)
        flying += len(claimed)
        if not (flying or waiting or elsewhere):
            return
        finished = executor.next_finished(_POLL_SECONDS)


def _claim(
    store: Store, waiting: deque[Cell], elsewhere: deque[Cell], free: int, retry_failed: bool, display: Display
) -> list[Cell]:
    claimed: list[Cell] = []
    looked_at = 0
    while free > len(claimed) and (waiting or looked_at < len(elsewhere)):
        again = not waiting
        cell = elsewhere.popleft() if again else waiting.popleft()
        answer = store.claim(cell, retry_failed=retry_failed and not again)
        if answer == "claimed":
            claimed.append(cell)
        elif answer == "taken":
            elsewhere.append(cell)
            looked_at += again
        else:
            display.settled_elsewhere(cell)
    return claimed


def environment() -> dict[str, Any]:
    """Describe the machine and the libraries that a run uses."""
    versions = {}
    for package in ("numpy", "scipy", "scikit-learn", "torch", "gpytorch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "mipl": mipl.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": usable_cpus(),
        "command": sys.argv,
        **versions,
    }


def _commit() -> str:
    """The commit of the source tree that mipl is imported from, or nothing outside a tree."""
    folder = Path(mipl.__file__).parent
    try:
        call = subprocess.run(
            ["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return call.stdout.strip()


def _executor(jobs: int, scheduler: str | None, limits: Limits) -> Executor:
    if scheduler is not None:
        from mipl.bench.on_dask import DaskExecutor

        return DaskExecutor(scheduler, limits)
    from mipl.bench.local import LocalExecutor

    return LocalExecutor(jobs, limits)


def _state(cell: Cell, states: dict[tuple[str, str], str], any_code: bool) -> str | None:
    return states.get((cell.key, "" if any_code else cell.code))
