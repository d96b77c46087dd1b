"""How long BagGP takes on a cluster, and what it needs: a cost model from constants that are measured here.

A fit is a list of steps. In each, every worker goes through its blocks, and the client waits for the slowest one; while
folds are left out, two steps are under way at a time. One run fits bags in this process with one thread, notes what
every step costs per instance and how often it is taken, and what the client does itself. Another one takes steps
without any work on one and two workers: what a step costs, and a task of it, and how much slower two workers of one
machine are when both work. Then steps are drawn one by one: tasks of a random length (the spread is measured), workers
that stall, workers that die and whose blocks are computed anew by the others.

The constants are kept in results/scale_model.json. "table" draws from these, compares the model with what
`benchmarks/scale.py dask` measured on one and on two workers, with which it must agree within 15 %, and puts both into
docs/scale.md.

Run: python benchmarks/scale_model.py measure
     python benchmarks/scale_model.py table
     python benchmarks/scale_model.py measure --size 20000 --landmarks 200 --constants /tmp/constants.json
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scale import RESULTS, ROOT, read
from scale_cases import BAG_SIZE, N_CLASSES, model, scanned
from scale_cluster import one_process, workers
from scale_tables import Table, markdown, put

from mipl.baggp import estimator
from mipl.baggp.blocks import Column, thin_product
from mipl.baggp.bundles import cut, groups, pieces
from mipl.baggp.constants import RUN_INSTANCES, SUM_FAN_IN
from mipl.baggp.on_dask import AT_CLIENT, OnDask
from mipl.baggp.places import Local
from mipl.baggp.sources import InFiles

#: (m, q) arrays in double precision that the client holds at once: priors, posteriors and evidence of both experts at
#: both variances and of held-out bags, and what is under way.
CLIENT_ARRAYS = 12
#: Of a cluster that we do not have: bytes per second of a link, seconds of a message, deaths per worker and hour, the
#: share of tasks that stall and for how many times as long, and seconds until a death is noticed.
BANDWIDTH, LATENCY, DEATHS, STALLS, STALL, NOTICE = 1.0e9, 5e-4, 1e-3, 1e-3, 5.0, 30.0
GOAL = 0.15
CONSTANTS = ROOT / "results" / "scale_model.json"


class Step(NamedTuple):
    """What all steps of one function cost.

    Attributes
    ----------
    calls : how often it is taken
    paired : how often of these while another one is under way
    seconds : per instance
    bag_bytes : per bag that the client sends
    summed : whether sums come back
    """

    calls: int
    paired: int
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
        self._working = self._paired = False

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

    def concurrently(self, tasks: Sequence[Callable[[Local], Any]]) -> list[Any]:
        """As `Local.concurrently`."""
        self._paired = len(tasks) > 1
        try:
            return super().concurrently(tasks)
        finally:
            self._paired = False

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
        self.notes.append((function.__name__, seconds, float(sent), summed, self._paired))
        return found


def measure_fit(scan: Any, n: int, n_landmarks: int) -> tuple[dict[str, Step], float, float, float]:
    """Steps of a fit, bytes per bag that were fetched, seconds of the client's own work, and seconds in all."""
    places: list[Timed] = []

    def place(n_threads: int = 1, scratch: Any = None) -> Timed:
        places.append(Timed(n_threads, scratch))
        return places[-1]

    kept, estimator.Local = estimator.Local, place  # type: ignore[assignment,misc]
    digests, spent = InFiles.digests, 0.0

    def timed_digests(files: InFiles, candidates: Any) -> Any:
        nonlocal spent
        began = time.process_time()
        result = digests(files, candidates)
        spent = time.process_time() - began
        return result

    InFiles.digests = timed_digests  # type: ignore[method-assign]
    try:
        with one_process():
            start = time.process_time()  # with one thread that is the time of a machine that does nothing else
            model(n_landmarks).fit(scan)
            seconds = time.process_time() - start
    finally:
        estimator.Local, InFiles.digests = kept, digests  # type: ignore[misc,method-assign]
    steps = {"digests": Step(1, 0, spent / n, 0.0, False)}  # a cluster does that too, not the client
    for name, took, sent, summed, paired in places[0].notes:
        old = steps.get(name, Step(0, 0, 0.0, 0.0, summed))
        steps[name] = Step(
            old.calls + 1,
            old.paired + paired,
            old.seconds + took / n,
            old.bag_bytes + sent / (n / BAG_SIZE),
            summed or old.summed,
        )
    return steps, places[0].fetched / (n / BAG_SIZE), seconds - places[0].inside - spent, seconds


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
    return found[0], max(0.0, found[1] - found[0]) / (_tasks(runs, 1, True) - 1)


def _same(value: float) -> float:
    return value


def _nothing(value: float, weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (weights + value,)


def measure_crowding(client: Any, rank: int, repeats: int = 20) -> float:
    """How many times as long a pass over features takes on each of two workers at once as on one alone."""
    one, *others = client.scheduler_info()["workers"]
    alone, together = [], []
    for _ in range(repeats):
        alone.append(client.submit(_pass, rank, workers=[one], pure=False).result())
        both = [client.submit(_pass, rank, workers=[each], pure=False) for each in (one, *others)]
        together.append(max(client.gather(both)))
    return max(1.0, float(np.median(together) / np.median(alone)))


def _pass(rank: int) -> float:
    """Seconds of a pass over features that are larger than the cache, as in a step of the bag likelihood."""
    features, weights = torch.ones(65_536, rank), torch.ones(rank, N_CLASSES + 1)
    start = time.perf_counter()
    with one_process():
        for _ in range(3):
            thin_product(features, weights).T.contiguous() @ features
    return time.perf_counter() - start


def _tasks(runs: int, n_workers: int, summed: bool) -> int:
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


def constants(n: int, n_landmarks: int) -> tuple[Constants, float]:
    """Everything that is measured, and the seconds of the fit in one process."""
    with scanned(n) as scan:
        steps, fetched, own, seconds = measure_fit(scan, n, n_landmarks)
    with scanned(n // 4) as scan:
        small = measure_fit(scan, n // 4, n_landmarks)[2]
    per_bag = max(0.0, (own - small) / (0.75 * n / BAG_SIZE))
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
    with one_process():
        for _ in range(repeats):
            start = time.process_time()
            features @ weights
            times.append(time.process_time() - start)
    middle = np.sort(np.log(times))[repeats // 10 : -repeats // 10]
    return float(middle.std())


# -------------------------------------------------------------------- simulation


class Predicted(NamedTuple):
    """Seconds of a fit, those of the client in it, and bytes per worker, of the client and over the client's link."""

    seconds: float
    client_seconds: float
    worker_bytes: float
    client_bytes: float
    link_bytes: float


def simulate(n: float, n_workers: int, found: Constants, rng: np.random.Generator, local: bool = False) -> Predicted:
    """Draw a fit of n instances step by step; `local` is the machine of the measurement: nothing stalls or dies."""
    runs, m = max(1, round(n / RUN_INSTANCES)), n / BAG_SIZE
    each = runs / n_workers
    parameter_bytes = found.rank * (N_CLASSES + 1) * 8
    bandwidth = 4 * BANDWIDTH if local else BANDWIDTH
    slower = found.crowded if local and n_workers > 1 else 1.0
    client = found.client[0] + found.client[1] * m
    link = found.fetched * m
    seconds = client + link / bandwidth
    features = sum(found.steps[name].seconds for name in ("_block", "_rotate", "leave_out_factors"))
    n_tasks = {summed: _tasks(runs, n_workers, summed) for summed in (False, True)}
    for step in found.steps.values():
        per_run = slower * step.seconds / step.calls * n / runs
        moved = step.bag_bytes / step.calls * m
        handed_out = (n_tasks[step.summed] - 1) * found.per_task
        spread = math.ceil(math.log2(max(n_workers, 2))) * parameter_bytes / bandwidth
        levels = math.ceil(math.log(max(runs, 2), SUM_FAN_IN)) if step.summed else 0
        wait = spread + levels * (LATENCY + SUM_FAN_IN * parameter_bytes / bandwidth)
        link += moved + parameter_bytes * (1 + step.summed) * step.calls
        for i in range(step.calls):
            # Sums of many log-normal times are nearly normal.
            own = rng.normal(each, found.spread * math.sqrt(each), n_workers)
            if not local:
                own += STALL * rng.binomial(math.ceil(each), STALLS, n_workers)
            # Workers compute while the scheduler is busy with the tasks of others, and all the time while the other one
            # of two steps is under way.
            work, busy, idle = per_run * own.max(), handed_out + moved / bandwidth, found.per_step + wait
            took = max(work, busy + idle) if i < step.paired else max(work, busy) + idle
            died = 0 if local else rng.poisson(DEATHS / 3600 * n_workers * took)
            if died and n_workers > 1:
                again = math.ceil(runs / n_workers / (n_workers - 1))
                took += died * (NOTICE + again * features * n / runs)
            seconds += took
    worker = 4 * found.rank * (n + m) / n_workers
    return Predicted(seconds, client, 2.5 * worker, CLIENT_ARRAYS * 8 * m * N_CLASSES, link)


# -------------------------------------------------------------------- tables


def step_table(found: Constants, alone: float, n: int) -> Table:
    """What was measured."""
    work = sorted(found.steps.items(), key=lambda item: -item[1].seconds)[:8]
    rows = [(name.strip("_").replace("_", " "), f"{s.calls:,}", f"{1e6 * s.seconds:.1f}") for name, s in work]
    remarks = [
        f"In all {alone:,.0f} s for {n:,} instances with rank {found.rank:,} on one core; the client's own work "
        f"is {found.client[0]:.1f} s and {1e6 * found.client[1]:.1f} µs per bag. A step costs "
        f"{1e3 * found.per_step:.1f} ms on a cluster, and each further task of it {1e3 * found.per_task:.1f} ms; the "
        f"length of tasks varies by {found.spread:.0%}, and two workers of one machine take {found.crowded:.2f} "
        "times as long for the same work as one alone."
    ]
    return Table("The steps of a fit that take longest", ("step", "calls", "µs / instance in all"), rows, remarks)


def check_table(found: Constants, n_landmarks: int, rng: np.random.Generator) -> Table:
    """The model against fits on one and two workers."""
    rows = []
    for case, cost in read(RESULTS).items():
        if case.part == "dask" and case.where != "process" and case.landmarks == n_landmarks:
            predicted = simulate(case.instances, int(case.where.split()[0]), found, rng, local=True).seconds
            words = case.where, f"{case.instances:,}", f"{cost.seconds:,.0f}", f"{predicted:,.0f}"
            rows.append((*words, f"{predicted / cost.seconds - 1:+.0%}", f"{cost.cores}"))
    header = ("where", "instances", "measured s", "predicted s", "error", "cores")
    return Table("The model against measured fits", header, rows, [f"Goal: within {GOAL:.0%}, with a core per worker."])


def large_table(found: Constants, rng: np.random.Generator) -> Table:
    """What large fits would take."""
    rows = []
    for n in (1e8, 1e9):
        for n_workers in (10, 100, 1000):
            p = simulate(n, n_workers, found, rng)
            hours = [f"{each / 3600:,.1f}" for each in (p.seconds, p.client_seconds)]
            gib = [f"{each / 2**30:,.0f}" for each in (p.worker_bytes, p.client_bytes, p.link_bytes)]
            rows.append((f"{n:.0e}".replace("+0", ""), f"{n_workers:,}", *hours, *gib))
    header = ("instances", "workers", "hours", "of these client", "GiB / worker", "GiB client", "GiB over its link")
    return Table(f"Predicted fits with rank {found.rank:,} and {N_CLASSES} classes", header, rows, [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"], help="the constants, or what follows from them")
    parser.add_argument("--size", type=int, default=60_000, help="instances of the measurement (default: %(default)s)")
    parser.add_argument("--landmarks", type=int, default=2000, help="landmarks of the model (default: %(default)s)")
    parser.add_argument(
        "--constants", type=Path, default=CONSTANTS, help="the file (default: results/scale_model.json)"
    )
    given = parser.parse_args()
    if given.what == "measure":
        found, alone = constants(given.size, given.landmarks)
        given.constants.write_text(
            json.dumps({**found._asdict(), "seconds": alone, "size": given.size}, indent=1) + "\n"
        )
    kept = json.loads(given.constants.read_text())
    alone, n = kept.pop("seconds"), kept.pop("size")
    kept["steps"] = {name: Step(*step) for name, step in kept["steps"].items()}
    found = Constants(**kept)
    rng = np.random.default_rng(0)
    tables = {
        "steps": step_table(found, alone, n),
        "check": check_table(found, 2 * found.rank, rng),
        "large": large_table(found, rng),
    }
    page = ROOT / "docs" / "scale.md"
    for name, table in tables.items():
        text = "\n".join(markdown(table))
        print(text, end="\n\n")
        if given.what == "table" and given.constants == CONSTANTS:
            page.write_text(put(page.read_text(), name, text))


if __name__ == "__main__":
    main()
