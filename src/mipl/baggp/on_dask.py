"""Blocks on a Dask cluster: they live on the workers that computed them.

Some consecutive runs of blocks are one future, a *bundle*: a task costs scheduler and worker milliseconds, whatever
it does. Per step there is one task per bundle, parameters are sent once and fetched by the workers from each other, and
sums come back by the tree of `mipl.baggp.blocks.tree_sum`: the same additions in the same order as in one process, so
that the result has the same bits however runs are bundled, wherever and however often a task was computed.

Blocks are never changed where they lie. Every future is a pure function of others and of what the client sent, down to
the rows of files, so that what is lost with a worker is computed anew.
"""

from __future__ import annotations

import math
import threading
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count, islice
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mipl.baggp.blocks import Column, add_up, tree_sum
from mipl.baggp.constants import SUM_FAN_IN
from mipl.clusters import check_versions, cluster_errors, gather, same
from mipl.compute import limit_torch

__all__ = ["AT_CLIENT", "OnDask", "bundle_size"]

#: Bytes of parameters up to which they go with every task: a fetch from another worker would take longer.
_SMALL = 4096
#: Bytes of parameters beyond which sums are taken to be large too, so that only one of them should come to the client.
_LARGE = 1 << 20
#: Sums of runs that are added up by the client, at most.
AT_CLIENT = 2 * SUM_FAN_IN
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
        spans = self._spans(columns)
        slots = _slots(self._submit(_map, function, columns, shared, spans), spans)
        return Column(slots, [list(range(len(p))) for p in columns[0].picks])

    def total(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""
        spans = self._spans(columns)
        grouped = all(start % SUM_FAN_IN == 0 for start, _ in spans)
        work = _sum_groups if grouped else _sum_runs
        found = self._submit(work, function, columns, shared, spans)
        sums = _slots(found, [(a // SUM_FAN_IN, -(-b // SUM_FAN_IN)) for a, b in spans] if grouped else spans)
        # The last few are added up here, which saves a task and a round between workers, unless they are large.
        here = AT_CLIENT if _size(shared) <= _LARGE else 1
        while len(sums) > here:
            name = self._name("tree")
            with cluster_errors(self._client, _ADVICE):
                nodes = []
                for i in range(0, len(sums), SUM_FAN_IN):
                    at, bundles = _taken(sums[i : i + SUM_FAN_IN])
                    nodes.append(self._client.submit(_add, at, *bundles, key=(name, i), pure=False))
            self._futures.update(nodes)
            sums = [_Slot(node, 0) for node in nodes]
        return tree_sum(self._values(sums))

    def join(self, function: Callable[[list[Any]], Any], column: Column) -> Column:
        """Call a function with the list of all entries of a run."""
        spans = self._spans([column])
        return Column(_slots(self._submit(_join, function, [column], {}, spans), spans), [[0] for _ in column.runs])

    def each(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        """Results of a function of values in this process, one after the other."""
        return map(function, values)

    def concurrently(self, tasks: Sequence[Callable[[OnDask], Any]]) -> list[Any]:
        """Results of independent tasks, one after the other: each of them occupies all workers."""
        return [task(self) for task in tasks]

    def fetch(self, column: Column) -> list[Any]:
        """The values of a column in this process, one per block."""
        remote = [run for run in column.runs if isinstance(run, _Slot)]
        found = iter(self._values(remote) if remote else [])
        runs = [next(found) if isinstance(run, _Slot) else run for run in column.runs]
        return [run[i] for run, picks in zip(runs, column.picks, strict=True) for i in picks]

    # ---------------------------------------------------------------- tasks

    def _spans(self, columns: Sequence[Column]) -> list[tuple[int, int]]:
        """The runs of each task, as (start, stop): those of a bundle, or as many as each thread of the cluster gets."""
        remote = [column.runs for column in columns if column.runs and isinstance(column.runs[0], _Slot)]
        n_runs = len(columns[0].runs)
        if not remote:
            with cluster_errors(self._client, _ADVICE):
                size = bundle_size(n_runs, sum(int(n) for n in self._client.nthreads().values()))
            return [(start, min(start + size, n_runs)) for start in range(0, n_runs, size)]
        keys = [tuple(runs[r].bundle.key for runs in remote) for r in range(n_runs)]
        starts = [r for r in range(n_runs) if r == 0 or keys[r] != keys[r - 1]]
        return list(zip(starts, [*starts[1:], n_runs], strict=True))

    def _submit(
        self,
        work: Callable[..., Any],
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
        spans: Sequence[tuple[int, int]],
    ) -> list[Any]:
        """One task per span of runs that does this work with their blocks."""
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")
        name = self._name(getattr(function, "__name__", "step").strip("_"))
        sent = [[_to_send(column, *span) for column in columns] for span in spans]
        picks = [[each.picks for each in task] for task in sent]
        runs = [[task[c].runs for task in sent] for c in range(len(columns))]
        keys = [(name, i) for i in range(len(spans))]
        with cluster_errors(self._client, _ADVICE), warnings.catch_warnings():
            # Bags that are in memory here travel with the tasks, so that the scheduler can send them again.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            given: Any = shared
            if _size(shared) > _SMALL:
                given = self._client.submit(same, shared, key=(f"{name}-shared", 0), pure=False)
            found = self._client.map(work, [function] * len(spans), picks, *runs, shared=given, key=keys, pure=False)
        self._futures.update(found)
        return list(found)

    def _values(self, slots: Sequence[_Slot]) -> list[Any]:
        """What lies in slots, each bundle fetched once."""
        bundles = {slot.bundle.key: slot.bundle for slot in slots}
        found = dict(zip(bundles, self._gather(list(bundles.values())), strict=True))
        return [found[slot.bundle.key][slot.at] for slot in slots]

    def _name(self, what: str) -> str:
        """A name for the tasks of a step that no other step and no other fit has."""
        return f"mipl-{what}-{self._fit}-{next(self._steps)}"

    def _gather(self, futures: Sequence[Any]) -> list[Any]:
        return gather(self._client, futures, _ADVICE, self._check)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")


def bundle_size(n_runs: int, threads: int) -> int:
    """Runs of a bundle: one bundle per thread where there are few runs, else two or more of up to a group of the tree.

    >>> [bundle_size(n_runs, 2) for n_runs in (3, 10, 20, 100)]
    [2, 5, 4, 8]
    """
    if n_runs <= AT_CLIENT:
        return math.ceil(n_runs / max(threads, math.ceil(n_runs / SUM_FAN_IN), 1))
    return max(size for size in (1, 2, 4, SUM_FAN_IN) if size == 1 or n_runs // size >= 2 * threads)


class _Slot(NamedTuple):
    """One run, or one sum, of those in a future."""

    bundle: Any
    at: int


class _Sent(NamedTuple):
    """What a task gets of a column: its runs, and per run where it is among these and which entries are meant."""

    runs: Any
    picks: list[tuple[int, list[int]]]


def _slots(bundles: Sequence[Any], spans: Sequence[tuple[int, int]]) -> list[_Slot]:
    return [_Slot(bundle, k) for bundle, (start, stop) in zip(bundles, spans, strict=True) for k in range(stop - start)]


def _taken(slots: Sequence[_Slot]) -> tuple[list[tuple[int, int]], list[Any]]:
    """Slots as positions (bundle, place in it), and the bundles."""
    bundles = {slot.bundle.key: slot.bundle for slot in slots}
    order = {key: i for i, key in enumerate(bundles)}
    return [(order[slot.bundle.key], slot.at) for slot in slots], list(bundles.values())


def _to_send(column: Column, start: int, stop: int) -> _Sent:
    """Some runs of a column without local values that nobody asks for."""
    runs, picks = column.runs[start:stop], column.picks[start:stop]
    if isinstance(runs[0], _Slot):
        return _Sent(runs[0].bundle, [(run.at, chosen) for run, chosen in zip(runs, picks, strict=True)])
    # A piece of a tensor leaves the rest of it behind.
    kept = [[_alone(run[i]) for i in chosen] for run, chosen in zip(runs, picks, strict=True)]
    return _Sent(kept, [(k, list(range(len(chosen)))) for k, chosen in enumerate(picks)])


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


#: For each column and each run of a task: where the run is among those that the task gets, and which entries are meant.
Picks = Sequence[Sequence[tuple[int, list[int]]]]


def _calls(
    function: Callable[..., Any], picks: Picks, columns: Sequence[Any], shared: dict[str, Any]
) -> Iterator[Iterator[Any]]:
    """What a function gives for the blocks of each run."""
    for run in zip(*picks, strict=True):
        values = [column[at] for column, (at, _) in zip(columns, run, strict=True)]
        entries = zip(*(chosen for _, chosen in run), strict=True)
        yield (function(*(v[i] for v, i in zip(values, at, strict=True)), **shared) for at in entries)


def _map(function: Callable[..., Any], picks: Picks, *columns: Any, shared: dict[str, Any]) -> list[Any]:
    _measure_tensors()
    with limit_torch(one_thread=True):
        return [list(run) for run in _calls(function, picks, columns, shared)]


def _sum_runs(function: Callable[..., Any], picks: Picks, *columns: Any, shared: dict[str, Any]) -> list[Any]:
    with limit_torch(one_thread=True):
        return [add_up(run) for run in _calls(function, picks, columns, shared)]


def _sum_groups(function: Callable[..., Any], picks: Picks, *columns: Any, shared: dict[str, Any]) -> list[Any]:
    """The sums of groups of runs, which are those of the first level of the tree."""
    with limit_torch(one_thread=True):
        runs = (add_up(run) for run in _calls(function, picks, columns, shared))
        return [add_up(islice(runs, SUM_FAN_IN)) for _ in range(0, len(picks[0]), SUM_FAN_IN)]


def _join(function: Callable[..., Any], picks: Picks, *columns: Any, shared: dict[str, Any]) -> list[Any]:
    with limit_torch(one_thread=True):
        return [[function([columns[0][at][i] for i in chosen])] for at, chosen in picks[0]]


def _add(at: Sequence[tuple[int, int]], *bundles: Any) -> list[Any]:
    return [add_up(bundles[b][k] for b, k in at)]
