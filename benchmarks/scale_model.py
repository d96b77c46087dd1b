"""How long BagGP takes on a cluster, and what it needs: a cost model from constants that are measured here.

A fit is a list of steps. In each, every worker goes through its blocks, and the client waits for the slowest one. One
run fits bags in this process with one thread, notes what every step costs per instance and how often it is taken, and
what the client does itself: with the sample that landmarks come from, which grows no further, and per bag, which is the
difference of two fits with few features. Another one takes steps without any work on one and two workers: what a step
costs, and a task of it, and how much slower two workers of one machine are when both work. Then steps are drawn one by
one: tasks of a random length (the spread is measured), workers that stall, workers that die and whose blocks are
computed anew by the others.

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
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scale import RESULTS, ROOT, read
from scale_cases import BAG_SIZE, N_CLASSES
from scale_constants import Constants, Step, constants, tasks_of
from scale_tables import Table, markdown, put

from mipl.baggp.constants import RUN_INSTANCES, SUM_FAN_IN

#: (m, q) arrays in double precision that the client holds at once: priors, posteriors and evidence of both experts at
#: both variances and of held-out bags, and what is under way.
CLIENT_ARRAYS = 12
#: Of a cluster that we do not have: bytes per second of a link, seconds of a message, deaths per worker and hour, the
#: share of tasks that stall and for how many times as long, and seconds until a death is noticed.
BANDWIDTH, LATENCY, DEATHS, STALLS, STALL, NOTICE = 1.0e9, 5e-4, 1e-3, 1e-3, 5.0, 30.0
GOAL = 0.15
CONSTANTS = ROOT / "results" / "scale_model.json"


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
    first = ("_block", "_rotate", "_left_out", "leave_out_factors")  # the last one as it was called in older figures
    features = sum(step.seconds for name, step in found.steps.items() if name in first)
    n_tasks = {summed: tasks_of(runs, n_workers, summed) for summed in (False, True)}
    for step in found.steps.values():
        per_run = slower * step.seconds / step.calls * n / runs
        moved = step.bag_bytes / step.calls * m
        handed_out = (n_tasks[step.summed] - 1) * found.per_task
        spread = math.ceil(math.log2(max(n_workers, 2))) * parameter_bytes / bandwidth
        levels = math.ceil(math.log(max(runs, 2), SUM_FAN_IN)) if step.summed else 0
        wait = spread + levels * (LATENCY + SUM_FAN_IN * parameter_bytes / bandwidth)
        link += moved + parameter_bytes * (1 + step.summed) * step.calls
        for _ in range(step.calls):
            # Sums of many log-normal times are nearly normal.
            own = rng.normal(each, found.spread * math.sqrt(each), n_workers)
            if not local:
                own += STALL * rng.binomial(math.ceil(each), STALLS, n_workers)
            # Workers compute while the scheduler is busy with the tasks of others.
            work, busy, idle = per_run * own.max(), handed_out + moved / bandwidth, found.per_step + wait
            took = max(work, busy) + idle
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
    parser.add_argument(
        "--size",
        type=int,
        default=210_000,
        help="instances of the measurement; beyond 200,000 landmarks come from a sample (default: %(default)s)",
    )
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
