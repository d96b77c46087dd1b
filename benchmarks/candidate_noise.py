"""What is lost where candidate sets lack the truth, without and with `BagGP(candidate_noise=...)`.

    python benchmarks/candidate_noise.py run --store results/candidate-noise.csv
    python benchmarks/candidate_noise.py table --store results/candidate-noise.csv

In a share of the training sets the true label is replaced by a random label that is not in the set, so that sets keep
their size; test bags are as they were. `run` appends one row per fit and skips those that the file has already; `table`
prints means over the seeds as Markdown. The raw data are needed (docs/datasets.md).
"""

from __future__ import annotations

import argparse
import csv
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mipl
from mipl.scoring import calibration_error

KEYS = ("data", "r", "seed", "noise", "option")
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
    """Fit and score one split; "found" is the chance that a wrong set has a larger `outside_` than a right one."""
    train, test = mipl.load(data, r=r, seed=seed).split(0.7, seed=seed)
    candidates, wrong = corrupt(train, noise, seed)
    start = time.process_time()
    value = {"0": 0.0, "auto": "auto", "true": noise}[option]
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


def read(store: Path) -> list[dict[str, str]]:
    if not store.exists():
        return []
    with store.open(newline="") as lines:
        return list(csv.DictReader(lines))


def run(args: Any) -> None:
    done = {tuple(row[key] for key in KEYS) for row in read(args.store)}
    # Seed by seed, so that a table can be made as soon as one is through.
    for seed, data, r, noise, option in product(args.seeds, args.data, args.r, args.noise, args.options):
        cell = (data, str(r), str(seed), str(noise), option)
        if cell in done or (option == "true" and noise == 0):
            continue
        figures = measure(data, r, seed, noise, option)
        row = dict(zip(KEYS, cell, strict=True)) | {name: f"{value:.4f}" for name, value in figures.items()}
        new = not args.store.exists()
        with args.store.open("a", newline="") as lines:
            writer = csv.DictWriter(lines, (*KEYS, *FIGURES))
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)


def table(args: Any) -> None:
    rows = read(args.store)
    cells = dict.fromkeys((row["data"], row["r"], row["noise"], row["option"]) for row in rows)
    print("| data | r | sets without truth | `candidate_noise` | splits | " + " | ".join(FIGURES) + " |")
    print("|" + "---|" * 4 + ":---:|" * (1 + len(FIGURES)))
    for cell in sorted(cells):
        chosen = [row for row in rows if (row["data"], row["r"], row["noise"], row["option"]) == cell]
        means = [np.mean([float(row[name]) for row in chosen]) for name in FIGURES]
        print("| " + " | ".join([*cell, str(len(chosen)), *(f"{mean:.3f}" for mean in means)]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--store", type=Path, default=Path("results/candidate-noise.csv"))
    parser.add_argument("--data", nargs="+", default=["mnist", "fmnist", "sival"])
    parser.add_argument("--r", type=int, nargs="+", default=[2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[60, 61, 62])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.2, 0.1, 0.0])
    parser.add_argument("--options", nargs="+", choices=("0", "auto", "true"), default=["0", "auto", "true"])
    args = parser.parse_args()
    run(args) if args.action == "run" else table(args)


if __name__ == "__main__":
    main()
