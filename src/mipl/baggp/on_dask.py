"""Blocks on a Dask cluster: they live on the workers that computed them.

The blocks of some consecutive runs are one future, a *bundle* (`mipl.baggp.bundles`). Per step there is one task per
bundle, parameters are sent once, and sums come back by the tree of `mipl.baggp.blocks.tree_sum`: the same additions in
the same order as in one process, so that the result has the same bits however blocks are bundled, wherever and however
often a task was computed.

Blocks are never changed where they lie. Every future is a pure function of others and of what the client sent, down to
the rows of files, so that what is lost with a worker is computed anew.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count, pairwise
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mipl.baggp.blocks import Column, add_up, tree_sum
from mipl.baggp.bundles import add_pieces, cut, groups, pieces, sum_pieces
from mipl.baggp.constants import SUM_FAN_IN
from mipl.clusters import check_versions, cluster_errors, dealt_out, gather, large_graphs_untold, n_threads, same
from mipl.compute import limit_torch, use_one_thread

__all__ = ["AT_CLIENT", "OnDask"]

#: Bytes of parameters, times tasks, up to which they go with the tasks: a fetch from another worker would take longer.
_WITH_TASKS = 1 << 20
#: Bytes of parameters beyond which sums are taken to be large too, so that only one of them should come to the client.
_LARGE = 1 << 20
#: Pieces of a sum that are added up by the client, at most.
AT_CLIENT = 2 * SUM_FAN_IN
_ADVICE = "lower rank or n_landmarks"


class OnDask:
    """Blocks on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster, which stays open.
    client_threads : int, default=1
        For what is done in this process, of which the cluster waits for most.
    """

    in_place = False

    def __init__(self, client: Any, client_threads: int = 1) -> None:
        _measure_tensors()
        self._client = client
        self._pool = ThreadPoolExecutor(client_threads, initializer=use_one_thread) if client_threads > 1 else None
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
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

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
        entries, lengths = [_entries(column) for column in columns], _lengths(columns)
        spans = self._spans(entries, lengths)
        found = self._submit(function, entries, shared, spans, [None] * len(spans))
        values = _refs(found, [stop - start for start, stop in spans])
        return Column.of([[next(values) for _ in range(n)] for n in lengths])

    def total(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""
        entries, lengths = [_entries(column) for column in columns], _lengths(columns)
        spans = self._spans(entries, lengths)
        plan = pieces(lengths, spans)
        found = self._submit(function, entries, shared, spans, [[piece.counts for piece in task] for task in plan])
        opens = [piece.opens for task in plan for piece in task]
        parts = list(_refs(found, [len(task) for task in plan]))
        # The last few are added up here, which saves a task and a round between workers, unless they are large.
        here = AT_CLIENT if _size(shared) <= _LARGE else 1
        if len(parts) <= here:
            return tree_sum([add_pieces(*group) for group in groups(opens, self._values(parts))])
        sums = [
            refs[0] if len(refs) == 1 else self._on_one(add_pieces, which, refs) for which, refs in groups(opens, parts)
        ]
        while len(sums) > here:
            sums = [self._on_one(_add, None, sums[i : i + SUM_FAN_IN]) for i in range(0, len(sums), SUM_FAN_IN)]
        return tree_sum(self._values(sums))

    def each(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        """Results of a function of values in this process, in order."""
        return map(function, values) if self._pool is None else self._pool.map(function, values)

    def fetch(self, column: Column) -> list[Any]:
        """The values of a column in this process, one per block."""
        entries = _entries(column)
        return self._values(entries) if _are_remote(entries) else entries

    # ---------------------------------------------------------------- tasks

    def _spans(self, entries: Sequence[list[Any]], lengths: Sequence[int]) -> list[tuple[int, int]]:
        """The blocks of each task, as (start, stop): those of a bundle, or what each thread of the cluster gets."""
        remote = [column for column in entries if _are_remote(column)]
        if not remote:
            return cut([_weight(value) for value in entries[0]], lengths, n_threads(self._client))
        keys = list(zip(*([ref.bundle.key for ref in column] for column in remote), strict=True))
        starts = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]]
        return list(pairwise([*starts, len(keys)]))

    def _submit(
        self,
        function: Callable[..., Any],
        entries: Sequence[list[Any]],
        shared: dict[str, Any],
        spans: Sequence[tuple[int, int]],
        counts: Sequence[list[list[int]] | None],
    ) -> list[Any]:
        """One task per span of blocks, which returns a value per block, or a sum per piece with so many blocks."""
        self._check()
        name, n = self._name(getattr(function, "__name__", "step").strip("_")), len(spans)
        sent = [[_to_send(column[start:stop]) for column in entries] for start, stop in spans]
        at = [[each.at for each in task] for task in sent]
        columns = [[task[c].values for task in sent] for c in range(len(entries))]
        keys = [(name, i) for i in range(n)]
        # Bags that are in memory here travel with the tasks, so that the scheduler can send them again.
        with cluster_errors(self._client, _ADVICE), large_graphs_untold():
            given = self._given(name, shared, n)
            tasks = list(zip([function] * n, at, counts, [given] * n, *columns, strict=True))
            if any(_are_remote(column) for column in entries):  # a task runs where its blocks are
                found = self._client.map(_run, *zip(*tasks, strict=True), key=keys, pure=False)
            else:
                found = dealt_out(self._client, _run, tasks, keys)
        self._futures.update(found)
        return list(found)

    def _given(self, name: str, shared: dict[str, Any], n_tasks: int) -> Any:
        """Parameters as tasks get them: in words that the scheduler need not read, or a future that workers fetch."""
        from distributed.protocol.pickle import dumps

        if _size(shared) * n_tasks <= _WITH_TASKS:
            return dumps(shared)
        return self._client.submit(same, shared, key=(f"{name}-shared", 0), pure=False)

    def _on_one(self, function: Callable[..., Any], option: Any, refs: Sequence[_Ref]) -> _Ref:
        """What a function makes of values that lie in several bundles, computed on one worker."""
        self._check()
        bundles = {ref.bundle.key: ref.bundle for ref in refs}
        order = {key: i for i, key in enumerate(bundles)}
        at = [(order[ref.bundle.key], ref.at) for ref in refs]
        with cluster_errors(self._client, _ADVICE):
            key = (self._name(function.__name__.strip("_")), 0)
            found = self._client.submit(_of_several, function, option, at, *bundles.values(), key=key, pure=False)
        self._futures.add(found)
        return _Ref(found, 0)

    def _values(self, refs: Sequence[_Ref]) -> list[Any]:
        """Values from the cluster, each bundle fetched once."""
        bundles = {ref.bundle.key: ref.bundle for ref in refs}
        found = dict(zip(bundles, self._gather(list(bundles.values())), strict=True))
        return [found[ref.bundle.key][ref.at] for ref in refs]

    def _name(self, what: str) -> str:
        """A name for the tasks of a step that no other step and no other fit has."""
        return f"mipl-{what}-{self._fit}-{next(self._steps)}"

    def _gather(self, futures: Sequence[Any]) -> list[Any]:
        return gather(self._client, futures, _ADVICE, self._check)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise InterruptedError("the fit was stopped")


class _Ref(NamedTuple):
    """A value on the cluster: the future that holds it with others, and its place among these."""

    bundle: Any
    at: int


class _Sent(NamedTuple):
    """What a task gets of a column: values, or the bundle that has them, and which of these are meant."""

    values: Any
    at: list[int]


def _refs(bundles: Sequence[Any], sizes: Sequence[int]) -> Iterator[_Ref]:
    """All values of bundles, which have so many."""
    return (_Ref(bundle, k) for bundle, size in zip(bundles, sizes, strict=True) for k in range(size))


def _entries(column: Column) -> list[Any]:
    """All entries of a column, block by block."""
    return [run[i] for run, picks in zip(column.runs, column.picks, strict=True) for i in picks]


def _lengths(columns: Sequence[Column]) -> list[int]:
    """Blocks of each run."""
    return [len(picks) for picks in columns[0].picks]


def _are_remote(entries: Sequence[Any]) -> bool:
    return isinstance(entries[0], _Ref)


def _to_send(entries: list[Any]) -> _Sent:
    if _are_remote(entries):
        return _Sent(entries[0].bundle, [ref.at for ref in entries])
    # A piece of a tensor leaves the rest of it behind.
    values = [value.clone() if isinstance(value, Tensor) else value for value in entries]
    return _Sent(values, list(range(len(values))))


def _weight(value: Any) -> int:
    """What a block costs: as many as it has bags, where these are sources or values of bags."""
    return len(value) if isinstance(value, Tensor) else getattr(value, "n_bags", 1)


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


def _run(
    function: Callable[..., Any], at: list[list[int]], counts: list[list[int]] | None, given: Any, *columns: Any
) -> list[Any]:
    """What a function gives for the blocks of a task, entry `at` of each column; or the sums of pieces of these."""
    from distributed.protocol.pickle import loads

    _measure_tensors()
    shared = loads(given) if isinstance(given, bytes) else given
    with limit_torch(one_thread=True):
        blocks = zip(*([column[i] for i in where] for column, where in zip(columns, at, strict=True)), strict=True)
        values = (function(*block, **shared) for block in blocks)
        return list(values) if counts is None else sum_pieces(values, counts)


def _of_several(function: Callable[..., Any], option: Any, at: Sequence[tuple[int, int]], *bundles: Any) -> list[Any]:
    with limit_torch(one_thread=True):
        return [function(option, [bundles[b][k] for b, k in at])]


def _add(_: None, values: list[Any]) -> Any:
    return add_up(values)
