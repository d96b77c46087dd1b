"""Run a suite into a store: start or go on where it stopped."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mipl
from mipl.bench.execution.cell_process import Limits, usable_cpus
from mipl.bench.execution.display import Display, PlainDisplay
from mipl.bench.execution.executor import Executor
from mipl.bench.store.records import Outcome
from mipl.bench.store.store import Store
from mipl.bench.suite.cell import Cell
from mipl.bench.suite.files import load_suite
from mipl.bench.suite.suite import Suite
from mipl.errors import DataError

__all__ = ["run", "run_cells"]

#: How often a run that has nothing left of its own looks whether another run has finished or died.
_POLL_SECONDS = 0.25
#: How many reasons an error names.
_TOLD_PROBLEMS = 3


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
    missing_scores: bool = False,
    display: Display | None = None,
) -> int:
    """Run what a suite still lacks, and give the number of its cells that have failed.

    A method that cannot be imported or built, parameters that it does not take and data that cannot be loaded are a
    `DataError` before the first cell runs.

    Parameters
    ----------
    suite : Suite, str or Path
        A suite, or its name or file.
    store : str or Path, default="bench.sqlite"
        The SQLite file of results. Any number of runs may share it.
    jobs : int, default=1
        Worker processes on this machine.
    scheduler : str or None, default=None
        Address of a Dask scheduler; cells then run on its cluster and `jobs` does not count.
    time_limit : float or None, default=None
        Seconds after which a cell is stopped and recorded as failed; the import of its method and the loading of its
        data count.
    memory_limit : float or None, default=None
        MiB of memory, that of child processes included, at which a cell is stopped and recorded as failed.
    retry_failed : bool, default=False
        Run cells again that have failed before.
    any_code : bool, default=False
        Take results made by another version of the code as finished.
    missing_scores : bool, default=False
        Run finished cells again that lack a score which the suite asks for.
    display : Display or None, default=None
        Told of the progress; None for plain lines on standard error.
    """
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    limits = Limits(time_limit, memory_limit)
    names: dict[str, str] = {}
    for place, cell in suite.cells().items():
        names.setdefault(cell.key, cell.of(place.method))
    cells = list({cell.key: cell for cell in suite.cells().values()}.values())
    shown = display or PlainDisplay()
    needed = suite.scores if missing_scores else ()
    with Store(store) as opened:
        states = opened.states(any_code=any_code, needed=needed)
        settled = {"done"} if retry_failed else {"done", "failed"}
        todo = [cell for cell in cells if _state(cell, states, any_code) not in settled]
        if todo:
            executor = _executor(jobs, scheduler, limits, suite.scores)
            try:
                check_cells(todo, executor)
                shown.begin(len(cells), {cell.key: names[cell.key] for cell in todo}, executor)
                run_cells(todo, opened, executor, shown, retry_failed=retry_failed, needed=needed)
            finally:
                executor.close()
                shown.stop()
            states = opened.states(any_code=any_code)
    failed = sum(_state(cell, states, any_code) == "failed" for cell in cells)
    shown.end(failed)
    return failed


def check_cells(cells: Sequence[Cell], executor: Executor) -> None:
    """Refuse cells that cannot run, before the first of them does: each method is built and each data set loaded once.

    Raises
    ------
    DataError
        With all that was found: a method that cannot be imported, parameters that it does not take, a file that cannot
        be read, raw data that are not there.
    """
    methods = {(cell.method, json.dumps(cell.params, sort_keys=True)): cell for cell in reversed(cells)}
    data = {
        (cell.dataset, cell.r, json.dumps({**cell.options, "seed": 0}, sort_keys=True)): cell for cell in cells[::-1]
    }
    problems = [f"{cell.method}: {problem}" for cell in methods.values() if (problem := executor.check(cell, "method"))]
    problems += [f"{cell.dataset}: {problem}" for cell in data.values() if (problem := executor.check(cell, "data"))]
    if problems:
        more = f"; and {len(problems) - _TOLD_PROBLEMS} more" if len(problems) > _TOLD_PROBLEMS else ""
        raise DataError(f"nothing was run: {'; '.join(problems[:_TOLD_PROBLEMS])}{more}")


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    display: Display,
    *,
    retry_failed: bool = False,
    needed: Collection[str] = (),
) -> None:
    """Claim cells one by one, run them, and write each outcome as it comes.

    One transaction writes an outcome and claims the next cell. Cells that another run holds come last: they are
    looked at again until that run has finished them, or has died.
    """
    waiting, elsewhere = deque(cells), deque[Cell]()
    flying = 0
    store.begin_run(environment())
    finished: tuple[Cell, Outcome] | None = None
    while True:
        flying -= finished is not None
        free = executor.slots - flying  # asks the cluster, so not while the store is locked
        with store.transaction():
            if finished is not None:
                store.finish(*finished)
            claimed = _claim(store, waiting, elsewhere, free, display, retry_failed=retry_failed, needed=needed)
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
    store: Store,
    waiting: deque[Cell],
    elsewhere: deque[Cell],
    free: int,
    display: Display,
    *,
    retry_failed: bool,
    needed: Collection[str],
) -> list[Cell]:
    claimed: list[Cell] = []
    looked_at = 0
    while free > len(claimed) and (waiting or looked_at < len(elsewhere)):
        again = not waiting
        cell = elsewhere.popleft() if again else waiting.popleft()
        # What another run has just tried is not tried again.
        answer = store.claim(cell, retry_failed=retry_failed and not again, needed=() if again else needed)
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


def _executor(jobs: int, scheduler: str | None, limits: Limits, scores: Sequence[str]) -> Executor:
    if scheduler is not None:
        from mipl.bench.execution.on_dask import DaskExecutor

        return DaskExecutor(scheduler, limits, scores)
    from mipl.bench.execution.local import LocalExecutor

    return LocalExecutor(jobs, limits, scores)


def _state(cell: Cell, states: dict[tuple[str, str], str], any_code: bool) -> str | None:
    return states.get((cell.key, "" if any_code else cell.code))
