"""The constants of the cost model in `benchmarks/scale_model.py`, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scale_cases import BAG_SIZE, N_CLASSES, model, scanned
from scale_cluster import label_prior, random_block, threads, workers

from mipl.baggp import estimator
from mipl.baggp.blocks import Column
from mipl.baggp.bundles import cut, groups, pieces
from mipl.baggp.constants import RUN_INSTANCES, SUM_FAN_IN
from mipl.baggp.leave_out import leave_out_factors
from mipl.baggp.likelihood_sums import likelihood_statistics
from mipl.baggp.low_rank import Ridge
from mipl.baggp.on_dask import AT_CLIENT, OnDask
from mipl.baggp.places import Local
from mipl.baggp.sources import InFiles

#: Fits whose difference is the client's work per bag, which does not depend on the features: instances, and landmarks.
PER_BAG_SIZES, PER_BAG_LANDMARKS = (20_000, 120_000), 60


class Step(NamedTuple):
    """What all steps of one function cost.

    Attributes
    ----------
    calls : how often it is taken
    seconds : per instance
    bag_bytes : per bag that the client sends
    summed : whether sums come back
    """

    calls: int
    seconds: float
    bag_bytes: float
    summed: bool


class Constants(NamedTuple):
    """What was measured.

    Attributes
    ----------
    steps : steps by the name of their function
    fetched : bytes per bag that the client fetches in all
    client : seconds of the client's own work that do not depend on the bags, and those per bag
    spread : standard deviation of the logarithm of a task's time
    per_step, per_task : seconds that a step takes on a cluster without any work, and those of each task of it
    crowded : how many times as long a task takes when another worker of the machine works too
    rank : number of features R
    """

    steps: dict[str, Step]
    fetched: float
    client: tuple[float, float]
    spread: float
    per_step: float
    per_task: float
    crowded: float
    rank: int


class Timed(Local):
    """Blocks in this process, with notes of what every step takes."""

    def __init__(self, n_threads: int = 1, scratch: Any = None) -> None:
        super().__init__(1, scratch)
        self.notes: list[tuple[str, float, float, bool, bool]] = []
        self.inside = self.fetched = 0.0
        self._working = False

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
        each: Callable[[int], None] | None = None,
    ) -> Column:
        """As `Local.map`."""
        return self._noted(partial(super().map, each=each), function, columns, shared, False)

    def total(self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]) -> Any:
        """As `Local.total`."""
        return self._noted(super().total, function, columns, shared, True)

    def fetch(self, column: Column) -> list[Any]:
        """As `Local.fetch`; what the fit itself fetches would come over the client's link."""
        found = super().fetch(column)
        if not self._working:
            self.fetched += sum(value.nbytes for value in found if isinstance(value, torch.Tensor))
        return found

    def _noted(self, call: Any, function: Any, columns: Sequence[Column], shared: dict[str, Any], summed: bool) -> Any:
        self._working = True
        start = time.process_time()
        found = call(function, columns, shared)
        seconds = time.process_time() - start
        self._working = False
        self.inside += seconds
        # What lies in this process as pieces of a tensor would be sent.
        sent = sum(
            values[i].nbytes
            for column in columns[1:]
            for values, picks in zip(column.runs, column.picks, strict=True)
            for i in picks
            if isinstance(values[i], torch.Tensor) and values[i].dtype == torch.float64 and values[i]._is_view()
        )
        self.notes.append((function.__name__, seconds, float(sent), summed))
        return found


def measure_fit(scan: Any, n: int, n_landmarks: int) -> tuple[dict[str, Step], float, float, float]:
    """Steps of a fit, bytes per bag that were fetched, seconds of the client's own work, and seconds in all."""
    places: list[Timed] = []

    def place(n_threads: int = 1, scratch: Any = None) -> Timed:
        places.append(Timed(n_threads, scratch))
        return places[-1]

    read: dict[str, float] = {}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            began = time.process_time()
            result = function(*args)
            read[name] = time.process_time() - began
            return result

        return call

    kept, estimator.Local = estimator.Local, place  # type: ignore[assignment,misc]
    readers = [(InFiles, "digests"), (InFiles, "take"), (type(scan), "supervision")]  # a cluster does these too
    before = [getattr(owner, name) for owner, name in readers]
    for (owner, name), function in zip(readers, before, strict=True):
        setattr(owner, name, timed(name, function))
    try:
        with threads(1):
            start = time.process_time()  # with one thread that is the time of a machine that does nothing else
            model(n_landmarks).fit(scan)
            seconds = time.process_time() - start
    finally:
        estimator.Local = kept  # type: ignore[misc]
        for (owner, name), function in zip(readers, before, strict=True):
            setattr(owner, name, function)
    steps = {name: Step(1, spent / n, 0.0, False) for name, spent in read.items()}
    for name, took, sent, summed in places[0].notes:
        old = steps.get(name, Step(0, 0.0, 0.0, summed))
        steps[name] = Step(
            old.calls + 1,
            old.seconds + took / n,
            old.bag_bytes + sent / (n / BAG_SIZE),
            summed or old.summed,
        )
    return steps, places[0].fetched / (n / BAG_SIZE), seconds - places[0].inside - sum(read.values()), seconds


def measure_overhead(client: Any, rank: int, runs: int = 400, repeats: int = 100) -> tuple[float, float]:
    """Seconds of a step without any work that has one task, and those of each further task."""
    place = OnDask(client)
    given = {"weights": torch.zeros(rank, N_CLASSES + 1, dtype=torch.float64)}
    found = []
    for n in (1, runs):
        column = place.map(_same, [Column.of([[0.0]] * n)], {})
        times = []
        for _ in range(repeats if n == 1 else repeats // 10):
            start = time.perf_counter()
            place.total(_nothing, [column], given)
            times.append(time.perf_counter() - start)
        found.append(float(np.median(times)))
    return found[0], max(0.0, found[1] - found[0]) / (tasks_of(runs, 1, True) - 1)


def _same(value: float) -> float:
    return value


def _nothing(value: float, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (weights + value,)


def measure_crowding(client: Any, rank: int, repeats: int = 5) -> float:
    """How many times as long the longest steps take on each of two workers at once as on one alone."""
    one, *others = client.scheduler_info()["workers"]
    alone, together = [], []
    for _ in range(repeats):
        alone.append(client.submit(_pass, rank, workers=[one], pure=False).result())
        both = [client.submit(_pass, rank, workers=[each], pure=False) for each in (one, *others)]
        together.append(max(client.gather(both)))
    return max(1.0, float(np.median(together) / np.median(alone)))


def _pass(rank: int, fits: int = 3, evaluations: int = 20) -> float:
    """Seconds of leave-out factors and evaluations of the bag likelihood, in about the proportion that a fit has."""
    block = random_block(RUN_INSTANCES // 2 // BAG_SIZE, rank, BAG_SIZE)  # larger than the cache
    candidates = torch.zeros(len(block.sums), fits, N_CLASSES, dtype=torch.bool)
    candidates[:, :, :2] = True
    prior = label_prior(block, candidates)
    weights, bias = torch.zeros(fits, N_CLASSES + 1, rank).double(), torch.zeros(N_CLASSES + 1).double()
    ridge = Ridge.of(torch.full((rank,), 1e6).double(), 1.0)
    start = time.perf_counter()
    with threads(1):
        leave_out_factors(block, ridge)
        for _ in range(evaluations):
            likelihood_statistics(block, prior, range(fits), weights, bias, log_kappa=1.0, hold_prior=False)
    return time.perf_counter() - start


def tasks_of(runs: int, n_workers: int, summed: bool) -> int:
    """Tasks of a step: one per bundle, and the tree's."""
    lengths = [1] * runs
    spans = cut([1.0] * runs, lengths, n_workers)
    opens = [piece.opens for task in pieces(lengths, spans) for piece in task]
    count, level = len(spans), len(opens)
    if summed and level > AT_CLIENT:
        members = [len(group) for _, group in groups(opens, opens)]
        count, level = count + sum(n > 1 for n in members), len(members)
        while level > AT_CLIENT:
            level = -(-level // SUM_FAN_IN)
            count += level
    return count


def measure_per_bag() -> float:
    """Seconds of the client's own work per bag, beyond what it does with the sample that landmarks come from."""
    kept, estimator.SAMPLE_INSTANCES = estimator.SAMPLE_INSTANCES, PER_BAG_SIZES[0] // 2
    own = []
    try:
        for n in PER_BAG_SIZES:
            with scanned(n) as scan:
                own.append(measure_fit(scan, n, PER_BAG_LANDMARKS)[2])
    finally:
        estimator.SAMPLE_INSTANCES = kept
    return max(0.0, (own[1] - own[0]) / (PER_BAG_SIZES[1] - PER_BAG_SIZES[0]) * BAG_SIZE)


def constants(n: int, n_landmarks: int) -> tuple[Constants, float]:
    """Everything that is measured, and the seconds of the fit in one process."""
    with scanned(n) as scan:
        steps, fetched, own, seconds = measure_fit(scan, n, n_landmarks)
    per_bag = measure_per_bag()
    rank = max(1, n_landmarks // 2)
    with workers(1) as client:
        per_step, per_task = measure_overhead(client, rank)
    with workers(2) as client:
        crowded = measure_crowding(client, rank)
    fixed = max(0.0, own - per_bag * n / BAG_SIZE)
    return Constants(steps, fetched, (fixed, per_bag), _spread(rank), per_step, per_task, crowded, rank), seconds


def _spread(rank: int, repeats: int = 40) -> float:
    """How much the time of one and the same task varies."""
    features = torch.randn(8192, rank)
    weights = torch.randn(rank, N_CLASSES + 1)
    times = []
    with threads(1):
        for _ in range(repeats):
            start = time.process_time()
            features @ weights
            times.append(time.process_time() - start)
    middle = np.sort(np.log(times))[repeats // 10 : -repeats // 10]
    return float(middle.std())
