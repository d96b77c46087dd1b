"""The deep methods' defaults on images, on development bags (seeds from 100 on, which no result uses).

``python benchmarks/deep_images.py OUT.csv`` fits each method to the training bags of MNIST-MIPL and FMNIST-MIPL with
r = 1 and 3: CPU seconds of the fit, the training loss after some epochs, the share of training bags whose label is
resolved, accuracy on test bags and the largest memory of the process so far. Every finished fit is appended to OUT.csv
and not run again. ``--set weight_decay=1e-4`` sets a parameter, ``--methods``, ``--datasets``, ``--r`` and ``--seed``
choose; raw data are needed (MIPL_DATA).
"""

from __future__ import annotations

import argparse
import ast
import csv
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import print_table

import mipl

METHODS = ("ELIMIPL", "FastMIPL", "DEMIPL", "MIPLMA", "ProMIPL")
FIRST_SEED = 100
#: Epochs whose loss is shown; the last one is added.
EPOCHS = (1, 5, 10, 20, 40)
HEADER = ("fit", "CPU s", "losses", "resolved", "accuracy", "peak MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--datasets", nargs="+", default=("mnist", "fmnist"))
    parser.add_argument("--r", nargs="+", type=int, default=(3, 1))
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--set", nargs="+", default=(), metavar="NAME=VALUE")
    options = parser.parse_args()
    if options.seed < FIRST_SEED:
        parser.error(f"seeds below {FIRST_SEED} are for results")
    warnings.filterwarnings("ignore", message=".*outside of the training range")
    params = {name: ast.literal_eval(value) for name, value in (word.split("=") for word in options.set)}
    for dataset in options.datasets:
        for r in options.r:
            for method in options.methods:
                fit = " ".join([method, dataset, f"r={r}", f"seed={options.seed}", *options.set])
                if fit not in {row[0] for row in rows(options.out)}:
                    with options.out.open("a", newline="") as file:
                        csv.writer(file).writerow([fit, *measure(method, dataset, r, options.seed, params)])
    print_table("development bags", HEADER, rows(options.out))


def measure(method: str, dataset: str, r: int, seed: int, params: dict[str, Any]) -> tuple[Any, ...]:
    """The columns of one fit, but for its name."""
    train, test = mipl.load(dataset, r=r, seed=seed).split(train_size=0.7, seed=seed)
    start = time.process_time()
    model = mipl.make(method, random_state=seed, **params).fit(train)
    cpu = time.process_time() - start
    shown = [model.loss_[epoch - 1] for epoch in EPOCHS if epoch < len(model.loss_)] + [model.loss_[-1]]
    resolved = float(np.mean(model.weights_.argmax(axis=1) == train.labels))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    losses = " ".join(f"{loss:.3f}" for loss in shown)
    return round(cpu, 1), losses, round(resolved, 3), round(model.score(test), 3), round(peak)


def rows(out: Path) -> list[list[str]]:
    """The rows of the fits that are done."""
    if not out.exists():
        return []
    with out.open(newline="") as file:
        return list(csv.reader(file))


if __name__ == "__main__":
    main()
