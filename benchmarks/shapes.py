"""Cost of BagGP and MIPLGP in the number of classes, in the size of one bag, and of one prediction at a time.

Part "classes": 400 bags of five instances x 16 with q classes. Part "bags": 100 bags of ten instances x 16 beside one
long bag. Part "service": predictions of single bags of 40 instances x 64 by a BagGP with its default 2,000 landmarks.
Each row runs in the same process after a first, uncounted fit; seconds are of the CPU (process time), which a busy
machine does not change, so that ratios to the first row tell how the cost grows.

Run: python benchmarks/shapes.py                              # all parts
     python benchmarks/shapes.py classes --values 5 200       # some rows
     python benchmarks/shapes.py bags --values 1 50000 --method MIPLGP
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from measure import measure, print_table

import mipl
from mipl.bags import Bags

CLASSES = (5, 20, 100, 200, 1000)
LONGEST = (1, 100, 1000, 10_000, 50_000, 100_000)
SETTINGS = {"BagGP": {}, "MIPLGP": {"engine": "auto"}}


def problem(q: int, sizes: list[int], d: int, seed: int = 0) -> tuple[Bags, np.ndarray]:
    """Bags of given sizes, one instance in five near the centre of the bag's class, with one false candidate."""
    rng = np.random.default_rng(seed)
    m, n = len(sizes), sum(sizes)
    labels = np.arange(m) % q
    X = rng.standard_normal((n, d), dtype=np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    centres = rng.standard_normal((q, d), dtype=np.float32)
    carries = np.arange(n) % 5 == 0
    X[carries] += 3 * centres[np.repeat(labels, sizes)[carries]]
    mask = np.zeros((m, q), dtype=bool)
    mask[np.arange(m), labels] = True
    mask[np.arange(m), (labels + rng.integers(1, q, m)) % q] = True
    return Bags(X, offsets), mask


def fit_seconds(method: str, q: int, sizes: list[int]) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak MiB of a fit."""
    bags, mask = problem(q, sizes, 16)
    start = time.process_time()
    cost = measure(lambda: mipl.make(method, **SETTINGS[method]).fit(bags, mask))
    return time.process_time() - start, cost.seconds, cost.peak_mib


def grow(title: str, method: str, cases: list[tuple[str, int, list[int]]]) -> None:
    bags, mask = problem(5, [5] * 40, 16)
    mipl.make(method, **SETTINGS[method]).fit(bags, mask)  # what happens only once
    rows, first = [], 0.0
    for name, q, sizes in cases:
        cpu, wall, mib = fit_seconds(method, q, sizes)
        first = first or cpu
        rows.append((name, f"{sum(sizes):,}", cpu, wall, cpu / first, mib))
        print(f"{method} {name}: {cpu:.2f} CPU s", flush=True)
    print_table(f"{method}, {title}", ("", "instances", "CPU s", "wall s", "ratio", "peak MiB"), rows)


def service(calls: int = 300) -> None:
    """Milliseconds of single predictions, and the memory that they leave behind."""
    bags, mask = problem(10, [20] * 150, 64)
    model = mipl.BagGP(cross_fit=0).fit(bags, mask)
    rng = np.random.default_rng(1)
    one = [rng.standard_normal((40, 64), dtype=np.float32) for _ in range(50)]
    for bag in one:
        model.predict([bag])
    seconds = []
    for i in range(calls):
        start = time.perf_counter()
        model.predict([one[i % 50]])
        seconds.append(time.perf_counter() - start)
    cpu = time.process_time()
    cost = measure(lambda: [model.predict([bag]) for bag in one * 4])
    cpu = (time.process_time() - cpu) / (4 * len(one))
    best, median, late = np.percentile(np.array(seconds) * 1e3, [0, 50, 95]).tolist()
    header = ("landmarks", "features", "best ms", "median ms", "95 % ms", "CPU ms", "MiB left by 200")
    rows = [(len(model.landmarks_), model.feature_map_.shape[1], best, median, late, 1e3 * cpu, cost.peak_mib)]
    print_table("BagGP, one bag of 40 instances x 64 at a time", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["classes", "bags", "service"])
    parser.add_argument("--values", type=int, nargs="+", help="numbers of classes, or sizes of the long bag")
    parser.add_argument("--method", choices=sorted(SETTINGS), default="BagGP")
    options = parser.parse_args()
    for part in options.parts:
        if part == "classes":
            cases = [(f"q = {q}", q, [5] * 400) for q in options.values or CLASSES]
            grow("400 bags of five instances", options.method, cases)
        elif part == "bags":
            cases = [(f"one bag of {n:,}", 5, [10] * 100 + [n]) for n in options.values or LONGEST]
            grow("100 bags of ten instances and a long one", options.method, cases)
        else:
            service()


if __name__ == "__main__":
    main()
