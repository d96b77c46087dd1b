"""Cells on this machine: N worker processes."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Sequence

from mipl.bench.execution.cell_process import CellProcess, Limits, usable_cpus
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.errors import ParameterError

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs up to `jobs` cells at a time, each in its own process; the processors' threads are divided among them.

    Parameters
    ----------
    jobs : int, default=1
        Number of processes.
    limits : Limits or None, default=None
        What one cell may use; None for no limits.
    scores : sequence of str, default=("accuracy",)
        What to compute of each cell.
    """

    def __init__(self, jobs: int = 1, limits: Limits | None = None, scores: Sequence[str] = ("accuracy",)) -> None:
        if jobs < 1:
            raise ParameterError(f"jobs={jobs} must be at least 1")
        self.slots = jobs
        self._scores = tuple(scores)
        threads = max(1, usable_cpus() // jobs)
        self.description = f"{jobs} process{'es' if jobs > 1 else ''} with {threads} thread{'s' if threads > 1 else ''}"
        self._waiting: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[tuple[Cell, Outcome]] = queue.SimpleQueue()
        self._processes = [CellProcess(threads, limits) for _ in range(jobs)]
        for process in self._processes:
            threading.Thread(target=self._serve, args=(process,), daemon=True).start()

    def _serve(self, process: CellProcess) -> None:
        while (cell := self._waiting.get()) is not None:
            try:
                outcome = process.run(cell, self._scores)
            except Exception as error:  # no process, no memory: the run waits for an outcome all the same
                outcome = Outcome(error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
            self._finished.put((cell, outcome))

    def check(self, cell: Cell, part: str) -> str:
        """Say what keeps a cell from running, before the first one is submitted; see `worker.problem_of`."""
        return self._processes[0].check(cell, part)

    def submit(self, cell: Cell) -> None:
        """Start a cell as soon as a process is free."""
        self._waiting.put(cell)

    def next_finished(self, timeout: float) -> tuple[Cell, Outcome] | None:
        """Wait for a cell to finish; None if none does within `timeout` seconds."""
        try:
            return self._finished.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Kill the processes; cells that they were running are lost."""
        for process in self._processes:
            self._waiting.put(None)
            process.close()
