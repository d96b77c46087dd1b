"""A Dask cluster of real processes on this machine, and the bytes that a step of a fit moves on it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from mipl.baggp.blocks import Block, Blocks, Column, divide
from mipl.baggp.likelihood_sums import LabelPrior, likelihood_statistics
from mipl.baggp.on_dask import OnDask

#: Dask has workers give memory back to the system as soon as it is free and take it again in the next task, which
#: costs up to a fourth of the time. These let them keep a gigabyte, see docs/scale.md.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**25}


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads for this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        with threadpool_limits(n):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def workers(n: int) -> Iterator[Any]:
    """A client of n workers of one thread, each a process; replicas stay, so that they can be counted."""
    import dask
    from distributed import Client, LocalCluster

    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    settings = {"distributed.scheduler.active-memory-manager.start": False}
    settings |= {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MALLOC.items()}
    with dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=n, threads_per_worker=1, dashboard_address=":0", memory_limit=0, host="127.0.0.1"
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            client.run(_import)  # starting is not what is measured
            yield client


def _import() -> None:
    import mipl.baggp.estimator  # noqa: F401


def usage(client: Any) -> tuple[float, float]:
    """CPU seconds of all workers so far, and the most MiB that one of them has had resident."""
    found = client.run(_usage)
    return sum(cpu for cpu, _ in found.values()), max(mib for _, mib in found.values())


def _usage() -> tuple[float, float]:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


class Moved(NamedTuple):
    """Bytes between processes in a step: as they were counted, and by the formula."""

    measured: int
    formula: int
    words: str

    def __str__(self) -> str:
        return f"{self.measured:,} bytes, by the formula {self.formula:,}: {self.words}"


def moved_per_step(client: Any, n: int, rank: int, q: int, bag_size: int = 10) -> Moved:
    """Take one step of the bag likelihood on random features of n instances, and count.

    The parameters (q + 1, R) go from the client to the scheduler, and from there with every task, or to one worker from
    which the others fetch them. A sum is a number and a gradient of that shape. Those that the tree adds up on another
    worker travel to it, and the last ones, sixteen at most, go to the client by way of the scheduler. All are in double
    precision. What is counted has the heads of messages and the tasks themselves besides.
    """
    m = n // bag_size
    parts = divide(n, np.zeros(m, dtype=np.int64))
    place = _Recording(client)
    sizes = Column.of([[len(part.bags) for part in run] for run in parts])
    features = place.map(random_block, [sizes], {"rank": rank, "bag_size": bag_size})
    blocks = Blocks(place, features, parts)
    candidates = torch.zeros(m, 1, q, dtype=torch.bool)
    candidates[:, :, :2] = True
    priors = blocks.map(label_prior, features, blocks.rows(candidates))
    place.fetch(blocks.map(_number, priors))
    weights, bias = torch.zeros(1, q + 1, rank, dtype=torch.float64), torch.zeros(q + 1, dtype=torch.float64)
    given = {"fits": [0], "weights": weights, "bias": bias, "log_kappa": 0.0, "hold_prior": False}
    blocks.total(likelihood_statistics, features, priors, **given)  # connections are opened
    place.kept.clear()  # from here on: the parameters, the pieces of the sum and the nodes of the tree
    place.fetched.clear()
    before = _sent(client)
    with _written() as written:
        blocks.total(likelihood_statistics, features, priors, **given)
        measured = sum(written)
    measured += _sent(client) - before
    number = rank * (q + 1) * 8
    held = dict(zip([future.key for future in place.kept], client.gather(place.kept), strict=True))
    copies = {key: len(workers) - 1 for key, workers in client.who_has(place.kept).items()}
    between = sum(copies[key] * _matrices(value) for key, value in held.items())
    last = sum(_matrices(held[key]) for key in place.fetched)
    out = 1 + (1 if any(isinstance(value, dict) for value in held.values()) else len(place.kept))
    words = (
        f"{out} matrices (R, q + 1) from the client to the scheduler and on to workers, {between} between workers, "
        f"{last} to the scheduler and on to the client, of {number:,} bytes each"
    )
    return Moved(measured, (out + between + 2 * last) * number, words)


def _matrices(value: Any) -> int:
    """How many parameters or sums there are in what a task returned."""
    return 1 if isinstance(value, dict) else len(value)


@contextmanager
def _written() -> Iterator[list[int]]:
    """The bytes of every message that this process, which has client and scheduler, writes."""
    from distributed.comm.tcp import TCP

    write, found = TCP.write, []

    async def counted(comm: TCP, *args: Any, **options: Any) -> int:
        found.append(await write(comm, *args, **options))
        return found[-1]

    TCP.write = counted
    try:
        yield found
    finally:
        TCP.write = write


class _Recording(OnDask):
    """Keeps the futures of a step, so that it can be asked where they are."""

    def __init__(self, client: Any) -> None:
        super().__init__(_Keeping(client, self))
        self.kept: list[Any] = []
        self.fetched: list[Any] = []

    def _gather(self, futures: Sequence[Any]) -> list[Any]:
        self.fetched += [future.key for future in futures]
        return super()._gather(futures)


class _Keeping:
    """A client that notes what is submitted."""

    def __init__(self, client: Any, owner: _Recording) -> None:
        self._client, self._owner = client, owner

    def submit(self, *args: Any, **options: Any) -> Any:
        found = self._client.submit(*args, **options)
        self._owner.kept.append(found)
        return found

    def map(self, *args: Any, **options: Any) -> Any:
        found = self._client.map(*args, **options)
        self._owner.kept.extend(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def label_prior(_: Block, candidates: torch.Tensor) -> LabelPrior:
    """What is known of bags with two candidates each, for one fit per column of the middle axis."""
    return LabelPrior.of(candidates.double() / 2, candidates, torch.ones(candidates.shape[:2]))


def random_block(m: int, rank: int, bag_size: int) -> Block:
    """Random features (n, R) of m bags."""
    offsets = torch.arange(0, m * bag_size + 1, bag_size)
    features = torch.randn(m * bag_size, rank, generator=torch.Generator().manual_seed(m))
    return Block(features, features.view(m, bag_size, rank).sum(dim=1), offsets)


def _number(_: Any) -> int:
    return 0


def _sent(client: Any) -> int:
    """Bytes of results that all workers have sent so far, to each other and to the scheduler."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())
