"""Bags that do not fit into memory. Part "predict": a model reads Parquet files chunk by chunk.

One run fits a BagGP, predicts 300,000 instances that lie in memory, and streams the same number and then `--size`
instances x 64 from Parquet files in a temporary folder, which is removed at the end. It prints the rate of each, the
ratio to the rate in memory, and the highest resident memory of the process.

Run: python benchmarks/scale.py predict                  # 10,000,000 instances, 2.6 GB of files
     python benchmarks/scale.py predict --size 1000000
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from measure import _status_mib, measure, print_table

import mipl

N_FEATURES, N_CLASSES, BAG_SIZE = 64, 10, 10
FILE_INSTANCES = 500_000
IN_MEMORY = 300_000
GOAL_RATIO, GOAL_MIB = 0.7, 2048


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


def write(folder: Path, n: int) -> None:
    """Write n instances in files of at most 500,000."""
    for i, start in enumerate(range(0, n, FILE_INSTANCES)):
        bags(min(FILE_INSTANCES, n - start), seed=i + 1).save(folder / f"part-{i:05}.parquet")


def predict(size: int, n_landmarks: int) -> None:
    model = mipl.BagGP(n_landmarks=n_landmarks, rank=min(1000, n_landmarks)).fit(bags(5000, seed=0))
    held = bags(IN_MEMORY, seed=99)
    model.predict_proba(held[:1000])  # what happens only once
    memory = measure(partial(model.predict_proba, held))
    rate = IN_MEMORY / memory.seconds
    rows = [("in memory", f"{IN_MEMORY:,}", memory.seconds, rate, 1.0, _status_mib("VmHWM"), "")]
    del held, memory
    for n in (IN_MEMORY, size):
        with tempfile.TemporaryDirectory(prefix="mipl-scale-") as name:
            write(Path(name), n)
            cost = measure(lambda folder=name: model.predict_proba(mipl.scan(folder)))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["predict"], help="what is measured")
    parser.add_argument(
        "--size", type=int, default=10_000_000, help="instances that are streamed (default: %(default)s)"
    )
    parser.add_argument("--landmarks", type=int, default=2000, help="landmarks of the model (default: %(default)s)")
    given = parser.parse_args()
    predict(given.size, given.landmarks)


if __name__ == "__main__":
    main()
