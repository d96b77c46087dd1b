"""Where blocks live and their statistics are computed: in this process, on its own threads, with or without a scratch.

Each block is worked on by one thread, so that the number of threads changes the time and not a single bit. The threads
are the pool's own: how many threads the caller's torch and BLAS use is neither read nor written.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType
from typing import Any

from torch import Tensor

from mipl.baggp.blocks import Block, Column, add_up, tree_sum
from mipl.baggp.scratch import Scratch, release
from mipl.compute import give_memory_back, use_one_thread

__all__ = ["Local"]


class Local:
    """Blocks in this process.

    Parameters
    ----------
    n_threads : int, default=1
        Blocks that are worked on at a time; with one, the calling thread does the work.
    scratch : Scratch, default=None
        Where blocks are kept instead of in memory.
    """

    in_place = True

    def __init__(self, n_threads: int = 1, scratch: Scratch | None = None) -> None:
        self._n_threads = n_threads
        self._scratch = scratch
        self._pool = ThreadPoolExecutor(n_threads, initializer=use_one_thread) if n_threads > 1 else None
        self._stopped = threading.Event()

    def __enter__(self) -> Local:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._scratch is not None:
            self._scratch.close()

    def stop(self) -> None:
        """Let the fit that runs in another thread end at its next block."""
        self._stopped.set()

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
        each: Callable[[int], None] | None = None,
    ) -> Column:
        """Call a function with the entries of columns, block by block."""
        results, runs = self._results(function, columns, shared), []
        for picks in columns[0].picks:
            runs.append(list(islice(results, len(picks))))
            if each is not None:
                each(len(runs))
        if self._scratch is not None:
            # The values of a block that stay lie between large ones that are gone.
            give_memory_back()
        return Column.of(runs)

    def total(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""
        results = self._results(function, columns, shared)
        return tree_sum([add_up(islice(results, len(picks))) for picks in columns[0].picks])

    def each(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        """Results of a function of values that are not blocks, in order."""
        return map(function, values) if self._pool is None else self._pool.map(function, values)

    def fetch(self, column: Column) -> list[Any]:
        """The values of a column, one per block."""
        return [run[i] for run, picks in zip(column.runs, column.picks, strict=True) for i in picks]

    def _results(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> Iterator[Any]:
        calls = zip(*(self.fetch(column) for column in columns), strict=True)
        if self._pool is None:
            return (self._call(function, call, shared) for call in calls)
        return self._ahead(self._pool, function, calls, shared)

    def _ahead(
        self, pool: ThreadPoolExecutor, function: Callable[..., Any], calls: Iterator[Any], shared: dict[str, Any]
    ) -> Iterator[Any]:
        """Results in order, a few of them computed ahead, so that few wait to be summed."""
        waiting: deque[Future[Any]] = deque()
        for call in calls:
            waiting.append(pool.submit(self._call, function, call, shared))
            if len(waiting) > 2 * self._n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _call(self, function: Callable[..., Any], call: tuple[Any, ...], shared: dict[str, Any]) -> Any:
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")
        result = function(*call, **shared)
        if self._scratch is None:
            return result
        if isinstance(result, Block):
            result = self._scratch.put(result)
        for value in (*call, result):
            if isinstance(value, Block):
                release(value)
        return result
