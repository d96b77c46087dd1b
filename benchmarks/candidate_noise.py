"""What is lost where candidate sets lack the truth, without and with `BagGP(candidate_noise=...)`.

    python benchmarks/candidate_noise.py run --store results/candidate-noise.csv
    python benchmarks/candidate_noise.py table --store results/candidate-noise.csv

In a share of the training sets the true label is replaced by a random label that is not in the set, so that sets keep
their size; test bags are as they were. `run` appends one row per fit and skips those that the file has already; `table`
prints means over the seeds as Markdown. "found" is the chance that a wrong set has a larger `outside_` than a right
one. The options "told" and "dropped" show what can be won at all: the wrong sets are known and count as sets of all
labels, or their bags are left out. The raw data are needed (docs/datasets.md).
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
from fit_store import FitStore
from numpy.typing import NDArray

import mipl
from mipl.scoring import calibration_error

KEYS = ("data", "r", "seed", "noise", "option")
OPTIONS = ("0", "auto", "true", "told", "dropped")
FIGURES = ("accuracy", "ece", "resolved", "estimated", "found", "cpu_seconds")


def corrupt(train: mipl.MIPLDataset, share: float, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Candidate sets (m, q) of which a share lacks the true label, and which (m,) these are."""
    rng = np.random.default_rng(seed)
    candidates, wrong = train.candidates.copy(), np.zeros(len(train), dtype=bool)
    wrong[rng.choice(len(train), round(share * len(train)), replace=False)] = True
    for bag in np.flatnonzero(wrong):
        new = rng.choice(np.flatnonzero(~candidates[bag]))
        candidates[bag, train.labels[bag]] = False
        candidates[bag, new] = True
    return candidates, wrong


def measure(data: str, r: int, seed: int, noise: float, option: str) -> dict[str, float]:
    """Fit and score one split."""
    train, test = mipl.load(data, r=r, seed=seed).split(0.7, seed=seed)
    candidates, wrong = corrupt(train, noise, seed)
    value = {"auto": "auto", "true": noise}.get(option, 0.0)
    if option == "told":
        candidates[wrong] = True
    if option == "dropped":
        train, candidates, wrong = train[~wrong], candidates[~wrong], wrong[~wrong]
    start = time.process_time()
    model = mipl.BagGP(random_state=seed, candidate_noise=value).fit(train.bags, candidates)
    seconds = time.process_time() - start
    proba = model.predict_proba(test.bags)
    above = model.outside_[wrong][:, None] - model.outside_[~wrong]
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == test.labels)),
        "ece": calibration_error(test.labels, proba),
        "resolved": float(np.mean(model.posterior_.argmax(axis=1) == train.labels)),
        "estimated": model.candidate_noise_,
        "found": float(np.mean((above > 0) + 0.5 * (above == 0))) if wrong.any() else float("nan"),
        "cpu_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--store", type=Path, default=Path("results/candidate-noise.csv"))
    parser.add_argument("--data", nargs="+", default=["mnist", "fmnist", "sival"])
    parser.add_argument("--r", type=int, nargs="+", default=[2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[60, 61, 62])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.2, 0.1, 0.0])
    parser.add_argument("--options", nargs="+", choices=OPTIONS, default=["0", "auto", "told", "dropped"])
    args = parser.parse_args()
    store = FitStore(args.store, KEYS, FIGURES)
    if args.action == "table":
        store.print_means()
        return
    # Seed by seed, so that a table can be made as soon as one is through.
    for seed, data, r, noise, option in product(args.seeds, args.data, args.r, args.noise, args.options):
        cell = (data, r, seed, noise, option)
        if not store.has(cell) and (noise > 0 or option in ("0", "auto")):
            store.append(cell, measure(data, r, seed, noise, option))


if __name__ == "__main__":
    main()
