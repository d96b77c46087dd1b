"""Blocks on a Dask cluster: they live on the workers that computed them.

A run of blocks is one future. Per step there is one task per run, parameters are sent once and fetched by the workers
from each other, and sums come back by the tree of `mipl.baggp.blocks.tree_sum`: the same additions in the same order as
in one process, so that the result has the same bits wherever and however often a task was computed.

Blocks are never changed where they lie. Every future is a pure function of others and of what the client sent, down to
the rows of files, so that what is lost with a worker is computed anew.
"""

from __future__ import annotations

import threading
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from mipl.baggp.blocks import Column, add_up, tree_sum
from mipl.baggp.constants import SUM_FAN_IN
from mipl.clusters import check_versions, cluster_errors, gather, same
from mipl.compute import limit_torch

__all__ = ["OnDask"]

#: Bytes of parameters up to which they go with every task: a fetch from another worker would take longer.
_SMALL = 4096
#: Bytes of parameters beyond which sums are taken to be large too, so that only one of them should come to the client.
_LARGE = 1 << 20
_ADVICE = "lower rank or n_landmarks"


class OnDask:
    """Blocks on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster, which stays open.
    """

    in_place = False

    def __init__(self, client: Any) -> None:
        _measure_tensors()
        self._client = client
        self._fit = uuid.uuid4().hex[:12]
        self._steps = count()
        self._stopped = threading.Event()
        self._futures: weakref.WeakSet[Any] = weakref.WeakSet()
        with cluster_errors(client, _ADVICE):
            check_versions(client)

    def __enter__(self) -> OnDask:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Leave nothing on the cluster, though this process may not have collected every column yet."""
        for future in list(self._futures):
            future.release()

    def stop(self) -> None:
        """Let the fit that runs in another thread end within a second."""
        self._stopped.set()

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
        each: Callable[[int], None] | None = None,
    ) -> Column:
        """Call a function with the entries of columns, block by block; the results stay where they were computed.

        The tasks run later, so `each` hears nothing.
        """
        return Column(self._submit(_map, function, columns, shared), [list(range(len(p))) for p in columns[0].picks])

    def total(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""
        sums = self._submit(_sum, function, columns, shared)
        # The last few are added up here, which saves a task and a round between workers, unless they are large.
        here = SUM_FAN_IN if _size(shared) <= _LARGE else 1
        while len(sums) > here:
            name = self._name("tree")
            with cluster_errors(self._client, _ADVICE):
                sums = [
                    self._client.submit(_add, *sums[i : i + SUM_FAN_IN], key=(name, i), pure=False)
                    for i in range(0, len(sums), SUM_FAN_IN)
                ]
            self._futures.update(sums)
        return tree_sum(self._gather(sums))

    def join(self, function: Callable[[list[Any]], Any], column: Column) -> Column:
        """Call a function with the list of all entries of a run."""
        return Column(self._submit(_join, function, [column], {}), [[0] for _ in column.runs])

    def each(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        """Results of a function of values in this process, one after the other."""
        return map(function, values)

    def concurrently(self, tasks: Sequence[Callable[[OnDask], Any]]) -> list[Any]:
        """Results of independent tasks, one after the other: each of them occupies all workers."""
        return [task(self) for task in tasks]

    def fetch(self, column: Column) -> list[Any]:
        """The values of a column in this process, one per block."""
        runs = list(column.runs)
        remote = [r for r, run in enumerate(runs) if not isinstance(run, list)]
        for r, run in zip(remote, self._gather([runs[r] for r in remote]) if remote else [], strict=True):
            runs[r] = run
        return [run[i] for run, picks in zip(runs, column.picks, strict=True) for i in picks]

    # ---------------------------------------------------------------- tasks

    def _submit(
        self,
        work: Callable[..., Any],
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
    ) -> list[Any]:
        """One task per run that does this work with its blocks."""
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")
        name = self._name(getattr(function, "__name__", "step").strip("_"))
        sent = [_to_send(column) for column in columns]
        picks = list(zip(*(column.picks for column in sent), strict=True))
        keys = [(name, r) for r in range(len(picks))]
        with cluster_errors(self._client, _ADVICE), warnings.catch_warnings():
            # Bags that are in memory here travel with the tasks, so that the scheduler can send them again.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            given: Any = shared
            if _size(shared) > _SMALL and len(picks) > 1:
                given = self._client.submit(same, shared, key=(f"{name}-shared", 0), pure=False)
            runs = [column.runs for column in sent]
            found = self._client.map(work, [function] * len(picks), picks, *runs, shared=given, key=keys, pure=False)
        self._futures.update(found)
        return list(found)

    def _name(self, what: str) -> str:
        """A name for the tasks of a step that no other step and no other fit has."""
        return f"mipl-{what}-{self._fit}-{next(self._steps)}"

    def _gather(self, futures: Sequence[Any]) -> list[Any]:
        return gather(self._client, futures, _ADVICE, self._check)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")


def _to_send(column: Column) -> Column:
    """The column without local values that nobody asks for; a piece of a tensor leaves the rest of it behind."""
    runs, picks = [], []
    for run, chosen in zip(column.runs, column.picks, strict=True):
        if isinstance(run, list):
            run, chosen = [_alone(run[i]) for i in chosen], list(range(len(chosen)))
        runs.append(run)
        picks.append(chosen)
    return Column(runs, picks)


def _alone(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _size(value: Any) -> int:
    """Bytes of what is sent, roughly."""
    from dask.sizeof import sizeof

    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return int(value.nbytes if isinstance(value, Tensor) else sizeof(value))


@cache
def _measure_tensors() -> None:
    """Tell Dask how large tensors are: it takes them for nothing, and would move blocks about and never spill them."""
    from dask.sizeof import sizeof

    sizeof.register(torch.Tensor)(lambda tensor: int(tensor.nbytes) + 64)


# -------------------------------------------------------------------- on a worker


def _calls(
    function: Callable[..., Any], picks: Sequence[list[int]], runs: Sequence[Any], shared: dict[str, Any]
) -> Any:
    for entries in zip(*picks, strict=True):
        yield function(*(run[i] for run, i in zip(runs, entries, strict=True)), **shared)


def _map(function: Callable[..., Any], picks: Sequence[list[int]], *runs: Any, shared: dict[str, Any]) -> list[Any]:
    _measure_tensors()
    with limit_torch(one_thread=True):
        return list(_calls(function, picks, runs, shared))


def _sum(function: Callable[..., Any], picks: Sequence[list[int]], *runs: Any, shared: Any) -> Any:
    with limit_torch(one_thread=True):
        return add_up(_calls(function, picks, runs, shared))


def _join(function: Callable[..., Any], picks: Sequence[list[int]], *runs: Any, shared: dict[str, Any]) -> list[Any]:
    with limit_torch(one_thread=True):
        return [function([runs[0][i] for i in picks[0]])]


def _add(*sums: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return add_up(sums)
