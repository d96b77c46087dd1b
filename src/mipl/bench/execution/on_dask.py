"""Cells on an existing Dask cluster.

Results come back to this process, which alone writes the store. A worker that dies takes no result with it: Dask gives
its cells to another one. Each Dask thread keeps a worker process of its own for its cells, the same as on one machine,
so limits, threads and memory figures mean the same.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from mipl.bench.execution.cell_process import CellProcess, Limits, usable_cpus
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.errors import UnavailableError

__all__ = ["DaskExecutor"]


class DaskExecutor:
    """Runs cells on a Dask cluster.

    Parameters
    ----------
    address : str
        Where its scheduler listens, for example ``tcp://10.0.0.1:8786``.
    limits : Limits or None, default=None
        What one cell may use; None for no limits.
    scores : sequence of str, default=("accuracy",)
        What to compute of each cell.
    timeout : float, default=10
        Seconds that the scheduler has to answer.
    """

    def __init__(
        self,
        address: str,
        limits: Limits | None = None,
        scores: Sequence[str] = ("accuracy",),
        timeout: float = 10,
    ) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise UnavailableError("--scheduler needs Dask: pip install 'mipl[dask]'") from error
        try:
            self._client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UnavailableError(f"no Dask scheduler answers at {address}: {error}") from error
        self._limits = limits or Limits()
        self._scores = tuple(scores)
        self._finished: queue.SimpleQueue[tuple[Cell, Any]] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}
        self._threads: dict[str, int] = {}
        self._asked = -float("inf")
        self.description = f"Dask at {address}, {sum(self._cluster().values())} threads"

    def _cluster(self) -> dict[str, int]:
        """Threads of each worker, by its address, as of at most a second ago: workers come and go."""
        if time.monotonic() - self._asked > 1:
            self._threads, self._asked = self._client.nthreads(), time.monotonic()
        return self._threads

    @property
    def slots(self) -> int:
        """Cells to hand out at a time: two for each thread of the cluster, so that none waits for us."""
        return max(1, 2 * sum(self._cluster().values()))

    def check(self, cell: Cell, part: str) -> str:
        """Say what keeps a cell from running on the cluster; see `worker.problem_of`."""
        future = self._to_cluster(_check_on_worker, cell, part)
        return "" if future.exception() is not None else future.result()

    def submit(self, cell: Cell) -> None:
        """Give a cell to the cluster."""
        future = self._to_cluster(_run_on_worker, cell, self._scores)
        self._futures[cell.key] = future
        future.add_done_callback(lambda done: self._finished.put((cell, done)))

    def _to_cluster(self, function: Callable[..., Any], cell: Cell, argument: Any) -> Any:
        on_host: Counter[str | None] = Counter()
        for address, threads in self._cluster().items():
            on_host[urlsplit(address).hostname] += threads
        sharing = max(on_host.values(), default=1)
        # A key of its own for each try: a run that takes over must not meet the task of one that was killed.
        key = f"mipl-{cell.key}-{uuid.uuid4().hex[:8]}"
        return self._client.submit(function, cell, argument, self._limits, sharing, key=key, pure=False)

    def next_finished(self, timeout: float) -> tuple[Cell, Outcome] | None:
        """Wait for a cell to finish; None if none does within `timeout` seconds."""
        try:
            cell, future = self._finished.get(timeout=timeout)
        except queue.Empty:
            return None
        del self._futures[cell.key]
        error = future.exception()
        if error is not None:  # the method's own errors are outcomes; this is the cluster's
            return cell, Outcome(error=f"{type(error).__name__}: {error}")
        return cell, future.result()

    def close(self) -> None:
        """Take back the cells that have not finished, and leave the cluster."""
        self._client.cancel(list(self._futures.values()))
        self._client.close()


_of_thread = threading.local()


def _run_on_worker(cell: Cell, scores: Sequence[str], limits: Limits, sharing: int) -> Outcome:
    return _process_of_thread(limits, sharing).run(cell, scores)


def _check_on_worker(cell: Cell, part: str, limits: Limits, sharing: int) -> str:
    return _process_of_thread(limits, sharing).check(cell, part)


def _process_of_thread(limits: Limits, sharing: int) -> CellProcess:
    """The process of this Dask thread; `sharing` such threads divide the host's processors."""
    process = getattr(_of_thread, "process", None)
    if process is None or process.limits != limits:
        if process is not None:
            process.close()
        process = _of_thread.process = CellProcess(max(1, usable_cpus() // sharing), limits)
    return process
