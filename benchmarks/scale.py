"""Bags that do not fit into memory, or on one machine.

Part "predict": a model reads Parquet files chunk by chunk. One run fits a BagGP, predicts 300,000 instances that lie in
memory, and streams the same number and then `--size` instances x 64 from Parquet files. It prints the rate of each, the
ratio to the rate in memory, and the highest resident memory of the process.

Part "fit": BagGP out of core. One run fits 300,000 instances in memory, then each of `--sizes` from Parquet files with
1 GiB for features; where these are more, they lie in a scratch file. It prints the time per instance relative to that
in memory, the highest resident memory, and the exponent of time in n.

Part "dask": BagGP on a cluster. One run fits `--size` instances from Parquet files in one process with one thread, on
one single-thread worker and on two. It prints the ratios, and the bytes that a step of the bag likelihood moved between
processes beside those of the formula.

Files lie in a temporary folder (TMPDIR), which is removed at the end.

Run: python benchmarks/scale.py predict                  # 10,000,000 instances, 2.6 GB of files
     python benchmarks/scale.py fit                      # up to 3,000,000 instances, 12 GB of scratch
     python benchmarks/scale.py dask                     # 300,000 instances
     python benchmarks/scale.py fit --in-memory 20000 --sizes 20000 60000 --landmarks 200
     python benchmarks/scale.py dask --size 20000 --landmarks 200
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import _status_mib, measure, print_table

import mipl

N_FEATURES, N_CLASSES, BAG_SIZE = 64, 10, 10
FILE_INSTANCES = 500_000
IN_MEMORY = 300_000
GOAL_RATIO, GOAL_MIB = 0.7, 2048
FIT_BUDGET, FIT_RATIO, FIT_MIB, FIT_EXPONENT = 2**30, 1.3, 4096, 1.1


def bags(n: int, seed: int) -> mipl.MIPLDataset:
    """Bags of ten instances, one of them near the centre of the bag's class, with one false candidate."""
    rng = np.random.default_rng(seed)
    m = n // BAG_SIZE
    labels = rng.integers(0, N_CLASSES, m)
    X = rng.standard_normal((m, BAG_SIZE, N_FEATURES), dtype=np.float32)
    centres = np.random.default_rng(0).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    X[:, 0] += 2 * centres[labels]
    mask = np.zeros((m, N_CLASSES), dtype=bool)
    mask[np.arange(m), labels] = True
    mask[np.arange(m), (labels + rng.integers(1, N_CLASSES, m)) % N_CLASSES] = True
    ids = np.arange(m) + seed * 10_000_000
    return mipl.MIPLDataset(X, mask, labels=labels, classes=np.arange(N_CLASSES), bag_ids=ids)


@contextmanager
def scanned(n: int) -> Iterator[mipl.Scan]:
    """A scan of n instances in files of at most 500,000."""
    with tempfile.TemporaryDirectory(prefix="mipl-scale-") as folder:
        for i, start in enumerate(range(0, n, FILE_INSTANCES)):
            bags(min(FILE_INSTANCES, n - start), seed=i + 1).save(Path(folder) / f"part-{i:05}.parquet")
        yield mipl.scan(folder)


def model(n_landmarks: int, **params: Any) -> mipl.BagGP:
    """A BagGP of half as many features as landmarks, which is the default's proportion."""
    return mipl.BagGP(n_landmarks=n_landmarks, rank=max(1, n_landmarks // 2), **params)


def predict(size: int, n_landmarks: int) -> None:
    fitted = mipl.BagGP(n_landmarks=n_landmarks, rank=min(1000, n_landmarks)).fit(bags(5000, seed=0))
    held = bags(IN_MEMORY, seed=99)
    fitted.predict_proba(held[:1000])  # what happens only once
    memory = measure(partial(fitted.predict_proba, held))
    rate = IN_MEMORY / memory.seconds
    rows = [("in memory", f"{IN_MEMORY:,}", memory.seconds, rate, 1.0, _status_mib("VmHWM"), "")]
    del held, memory
    for n in (IN_MEMORY, size):
        with scanned(n) as scan:
            cost = measure(partial(fitted.predict_proba, scan))
        goal = f">= {GOAL_RATIO}, < {GOAL_MIB} MiB"
        ratio = n / cost.seconds / rate
        rows.append(("streamed", f"{n:,}", cost.seconds, n / cost.seconds, ratio, _status_mib("VmHWM"), goal))
    print_table(
        f"prediction, {N_FEATURES} features, {N_CLASSES} classes, {n_landmarks} landmarks",
        ("bags", "instances", "s", "instances / s", "ratio", "resident MiB", "goal"),
        rows,
    )
    if size > IN_MEMORY:
        grown = np.log(rows[2][2] / rows[1][2]) / np.log(size / IN_MEMORY)
        print(f"time grows as n^{grown:.2f}")


def fit(sizes: list[int], in_memory: int, n_landmarks: int) -> None:
    # Beyond 200,000 instances two folds are used anyway; all sizes do the same work so.
    params = {"cross_fit": 2}
    held = bags(in_memory, seed=1)
    cost = measure(partial(model(n_landmarks, memory_budget=1e12, **params).fit, held))
    del held
    unit = cost.seconds / in_memory
    rows: list[tuple[Any, ...]] = [
        ("in memory", f"{in_memory:,}", cost.seconds, 1e6 * unit, 1.0, _status_mib("VmHWM"), "")
    ]
    seconds = []
    for n in sizes:
        with scanned(n) as scan:
            cost = measure(partial(model(n_landmarks, memory_budget=FIT_BUDGET, **params).fit, scan))
        seconds.append(cost.seconds)
        goal = f"<= {FIT_RATIO}, < {FIT_MIB} MiB"
        each = cost.seconds / n
        rows.append(("out of core", f"{n:,}", cost.seconds, 1e6 * each, each / unit, _status_mib("VmHWM"), goal))
        del cost
    print_table(
        f"fit, {N_FEATURES} features, {N_CLASSES} classes, {n_landmarks} landmarks, {torch.get_num_threads()} threads",
        ("bags", "instances", "s", "µs / instance", "ratio", "resident MiB", "goal"),
        rows,
    )
    if len(sizes) > 1:
        grown = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"time grows as n^{grown:.2f} (goal: at most {FIT_EXPONENT})")


def dask(size: int, n_landmarks: int) -> None:
    from scale_cluster import moved_per_step, one_process, workers

    params = {"cross_fit": 2}
    with scanned(size) as scan:
        with one_process():
            alone = measure(partial(model(n_landmarks, **params).fit, scan))
        rows = [("one process, one thread", alone.seconds, 1.0, "")]
        for n_workers, goal in ((1, "<= 1.15"), (2, f"<= {1 / 1.7:.2f}")):
            with one_process(), workers(n_workers) as client:  # the client too has one thread
                cost = measure(partial(model(n_landmarks, **params).fit, scan, client=client))
                moved = moved_per_step(client, size, max(1, n_landmarks // 2), N_CLASSES)
            same = np.array_equal(alone.result.coef_, cost.result.coef_)
            rows.append((f"{n_workers} worker(s)", cost.seconds, cost.seconds / alone.seconds, goal))
            print(f"{n_workers} worker(s): the same bits: {same}; a step of the bag likelihood moved {moved}")
    print_table(
        f"fit of {size:,} instances, {N_FEATURES} features, {N_CLASSES} classes, {n_landmarks} landmarks",
        ("where", "s", "ratio", "goal"),
        rows,
    )
    print(f"two workers are {rows[0][1] / rows[2][1]:.2f} times as fast as one process (goal: at least 1.7)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["predict", "fit", "dask"], help="what is measured")
    parser.add_argument(
        "--size", type=int, help="instances that are streamed (default: 10,000,000), or fitted on Dask (300,000)"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[100_000, 300_000, 1_000_000, 3_000_000],
        help="instances that are fitted out of core (default: %(default)s)",
    )
    parser.add_argument(
        "--in-memory", type=int, default=IN_MEMORY, help="instances that are fitted in memory (default: %(default)s)"
    )
    parser.add_argument("--landmarks", type=int, default=2000, help="landmarks of the model (default: %(default)s)")
    given = parser.parse_args()
    if given.part == "predict":
        predict(given.size or 10_000_000, given.landmarks)
    elif given.part == "fit":
        fit(given.sizes, given.in_memory, given.landmarks)
    else:
        dask(given.size or IN_MEMORY, given.landmarks)


if __name__ == "__main__":
    main()
