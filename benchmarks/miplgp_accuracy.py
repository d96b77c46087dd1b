"""Test accuracy of MIPLGP and its variants at the paper's settings, one row of a CSV file for each finished fit.

    python benchmarks/miplgp_accuracy.py results.csv --dataset mnist --r 1 2 3 --method released --splits 3

Bags are split 50 / 50 at random, as in the paper. Finished rows are not run again: stop and start at will. The last
lines compare with the paper's figures.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from pathlib import Path

import numpy as np
from measure import print_table

import mipl
from mipl.bench.published import published
from mipl.miplgp import MIPLGP

METHODS = {
    "released": {},
    "uniform": {"disambiguation": "uniform"},
    "naive": {"augment": False},
    "softmax": {"disambiguation": "softmax"},
    "bag": {"disambiguation": "bag"},
}
# The method's name in the paper; it has no row for the printed Eq. 3 apart from the release, nor for the bag posterior.
PAPER_NAMES = {"released": "MIPLGP", "uniform": "MIPLGP-uniform", "naive": "MIPLGP-naive"}
FIELDS = [
    "dataset", "r", "method", "split", "n_iter", "accuracy", "accuracy_augmented", "train_resolved", "negative_weight",
    "length_scale", "output_scale", "loss", "cg_iterations", "fit_seconds", "predict_seconds",
]  # fmt: skip
KEY = FIELDS[:4]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--r", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--method", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--n-iter", type=int, help="instead of the paper's; such rows are kept apart by their n_iter")
    parser.add_argument("--probes", type=int, default=3, help="MIPLGP's n_probes: one is enough at 10,000 instances")
    args = parser.parse_args()
    overrides = {} if args.n_iter is None else {"n_iter": args.n_iter}
    for split, method, r in itertools.product(range(args.splits), args.method, args.r):
        model = MIPLGP.paper(args.dataset, n_probes=args.probes, **METHODS[method], **overrides)
        key = [args.dataset, str(r), method, str(split), str(model.n_iter)]
        if key not in [[row[f] for f in [*KEY, "n_iter"]] for row in read(args.out)]:
            append(args.out, dict(zip([*KEY, "n_iter"], key, strict=True)) | run(model, args.dataset, r, split))
    summarise(read(args.out))


def run(model: MIPLGP, dataset: str, r: int, split: int) -> dict[str, object]:
    train, test = mipl.load(dataset, r=r, seed=split).split(0.5, seed=split)
    start = time.perf_counter()
    model.fit(train.bags, train.candidates)
    fitted = time.perf_counter()
    accuracy = model.score(test.bags, test.labels)
    done = time.perf_counter()
    resolved = model.resolve(train.bags, train.candidates).argmax(axis=1)
    model.normalize_over = "augmented"
    return {
        "accuracy": accuracy,
        "accuracy_augmented": model.score(test.bags, test.labels),
        "train_resolved": float(np.mean(resolved == train.labels)),
        "negative_weight": float(model.weights_[:, -1].mean()) if model.augment else "",
        "length_scale": model.length_scale_,
        "output_scale": model.output_scale_,
        "loss": model.loss_curve_[-1],
        "cg_iterations": float(model.cg_iterations_[:-1].mean()),
        "fit_seconds": round(fitted - start, 1),
        "predict_seconds": round(done - fitted, 1),
    }


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open())) if path.exists() else []


def append(path: Path, row: dict[str, object]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(row, flush=True)


def summarise(rows: list[dict[str, str]]) -> None:
    table = []
    for key in sorted({(row["dataset"], row["method"], row["n_iter"], row["r"]) for row in rows}):
        dataset, method, n_iter, r = key
        values = [
            float(row["accuracy"]) for row in rows if (row["dataset"], row["method"], row["n_iter"], row["r"]) == key
        ]
        figure = published(0.5).get((PAPER_NAMES.get(method, ""), "", dataset, int(r)))
        table.append(
            [
                method,
                dataset,
                n_iter,
                r,
                len(values),
                float(np.mean(values)),
                float(np.std(values)),
                figure.mean if figure else "",
            ]
        )
    header = ["method", "data set", "steps", "r", "splits", "accuracy", "std", "paper"]
    print_table("MIPLGP, test accuracy on random halves", header, table)


if __name__ == "__main__":
    main()
