"""What is lost where false candidates depend on the truth, against false candidates drawn at random.

    python benchmarks/correlated_candidates.py run --store results/correlated-candidates.csv
    python benchmarks/correlated_candidates.py table --store results/correlated-candidates.csv

"dragged": class c brings the false label c + 1 (the last class the first) in 80 % of its bags and another one in the
others; "random": the data set's own false candidates; r is the same. On cifar10h "people" are the labels that at least
one person gave to a photograph, "random" as many false ones drawn at random on the same bags; votes are not used. Only
the sets of training bags differ. `run` appends one row per fit and skips those that the file has already. The raw data
are needed (docs/datasets.md).
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from fit_store import FitStore
from numpy.typing import NDArray

import mipl
from mipl.scoring import calibration_error

KEYS = ("data", "r", "seed", "candidates")
FIGURES = ("accuracy", "ece", "resolved", "size")
DRAGGED = 0.8


def dragged(train: mipl.MIPLDataset, r: int, seed: int) -> NDArray[np.bool_]:
    """Candidate sets (m, q) of the label and r false ones, among them mostly the next class."""
    rng, q = np.random.default_rng(seed), train.n_classes
    candidates = np.zeros_like(train.candidates)
    for row, label in zip(candidates, train.labels, strict=True):
        following = (label + 1) % q
        others = rng.permutation([c for c in range(q) if c not in (label, following)])
        false = [following, *others] if rng.random() < DRAGGED else others
        row[[label, *false[:r]]] = True
    return candidates


def at_random(train: mipl.MIPLDataset, seed: int) -> NDArray[np.bool_]:
    """Sets (m, q) of the same sizes as the given ones: the label and false ones drawn at random."""
    rng = np.random.default_rng(seed)
    candidates = np.zeros_like(train.candidates)
    for row, label, size in zip(candidates, train.labels, train.candidates.sum(axis=1), strict=True):
        others = np.delete(np.arange(train.n_classes), label)
        row[[label, *rng.choice(others, size - 1, replace=False)]] = True
    return candidates


def measure(data: str, r: int, seed: int, kind: str, n_bags: int) -> dict[str, float]:
    """Fit and score one split; `r` is not used by cifar10h."""
    people = data == "cifar10h"
    ds = mipl.load(data, n_bags=n_bags, seed=seed) if people else mipl.load(data, r=r, seed=seed)
    train, test = ds.split(0.7, seed=seed)
    if kind == "random" and people:
        candidates = at_random(train, seed)
    else:
        candidates = dragged(train, r, seed) if kind == "dragged" else train.candidates
    model = mipl.BagGP(random_state=seed).fit(train.bags, candidates)
    proba = model.predict_proba(test.bags)
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == test.labels)),
        "ece": calibration_error(test.labels, proba),
        "resolved": float(np.mean(model.posterior_.argmax(axis=1) == train.labels)),
        "size": float(candidates.sum(axis=1).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--store", type=Path, default=Path("results/correlated-candidates.csv"))
    parser.add_argument("--data", nargs="+", default=["fmnist", "cifar10h", "mnist", "sival"])
    parser.add_argument("--r", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[60, 61, 62])
    parser.add_argument("--n-bags", type=int, default=1000, help="photographs of cifar10h")
    args = parser.parse_args()
    store = FitStore(args.store, KEYS, FIGURES)
    if args.action == "table":
        store.print_means()
        return
    for seed, data in product(args.seeds, args.data):
        for kind in ("random", "people" if data == "cifar10h" else "dragged"):
            cell = (data, "" if data == "cifar10h" else args.r, seed, kind)
            if not store.has(cell):
                store.append(cell, measure(data, args.r, seed, kind, args.n_bags))


if __name__ == "__main__":
    main()
