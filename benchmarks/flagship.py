"""BagGP on the five data sets of the MIPLGP paper: accuracy, calibration, instances found, seconds.

    python benchmarks/flagship.py run results.csv --seeds 30 31 32 33 34      # resumable: finished cells are kept
    python benchmarks/flagship.py table results.csv

A cell is (data set, r, share of training bags, seed); the seed draws bags, split and the model's random numbers. The
cells of one seed come before those of the next, so partial results are means over fewer seeds. Several processes may
run with ``--part i/k``, each with a file of its own; `table` takes any number of files.
"by chance" is the ECE that a perfectly calibrated model with the same probabilities would have on so few test bags.
"birdsong*" is Birdsong with no recording shared between training and test bags. Needs the raw data (MIPL_DATA).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

import mipl
from mipl.dataset import MIPLDataset

DATASETS = ("mnist", "fmnist", "birdsong", "sival", "newsgroups", "birdsong*")
MEASURES = ("accuracy", "ece", "chance_ece", "log_loss", "instance_ap", "resolve_accuracy", "resolve_ece", "seconds")


class Cell(NamedTuple):
    """One fit."""

    dataset: str
    r: int
    train_size: float
    seed: int

    def key(self) -> tuple[str, ...]:
        """As it stands in a file."""
        return tuple(map(str, self))


def cells(seeds: list[int], datasets: list[str], train_sizes: list[float]) -> Iterator[Cell]:
    for train_size, seed in product(train_sizes, seeds):
        for r, dataset in product((1, 3, 2), datasets):
            yield Cell(dataset, r, train_size, seed)


def split(cell: Cell) -> tuple[MIPLDataset, MIPLDataset]:
    options = {"groups": 10 if cell.train_size == 0.7 else 2} if cell.dataset.endswith("*") else {}
    ds = mipl.load(cell.dataset.rstrip("*"), r=cell.r, seed=cell.seed, **options)
    return ds.split(cell.train_size, cell.seed)


def calibration_error(proba: NDArray[np.floating], labels: NDArray[np.int64], bins: int = 10) -> float:
    """Expected calibration error of the predicted class, over equal bins of its probability."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs(np.sum(right[bin_of == b]) - np.sum(confidence[bin_of == b])) for b in range(bins)]
    return float(np.sum(gaps) / len(labels))


def chance_calibration_error(proba: NDArray[np.floating], draws: int = 50) -> float:
    """The calibration error that these probabilities would have if labels were drawn from them: its floor."""
    rng = np.random.default_rng(0)
    cumulative = proba.cumsum(axis=1) / proba.sum(axis=1, keepdims=True)
    labels = [(cumulative < rng.random((len(proba), 1))).sum(axis=1) for _ in range(draws)]
    return float(np.mean([calibration_error(proba, drawn) for drawn in labels]))


def run(cell: Cell) -> dict[str, float]:
    train, test = split(cell)
    start = time.process_time()
    model = mipl.BagGP(random_state=cell.seed).fit(train.bags, train.candidates)
    seconds = time.process_time() - start
    proba, resolved = model.predict_proba(test.bags), model.resolve(train.bags, train.candidates)
    rows = np.arange(len(test))
    average_precision = float("nan")
    if test.instance_labels is not None and (test.instance_labels >= 0).all():
        found = 1 - model.predict_instances(test.bags)[:, -1]
        average_precision = average_precision_score(test.instance_labels < test.n_classes, found)
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == test.labels)),
        "ece": calibration_error(proba, test.labels),
        "chance_ece": chance_calibration_error(proba),
        "log_loss": float(-np.mean(np.log(np.maximum(proba[rows, test.labels], 1e-12)))),
        "instance_ap": average_precision,
        "resolve_accuracy": float(np.mean(resolved.argmax(axis=1) == train.labels)),
        "resolve_ece": calibration_error(resolved, train.labels),
        "seconds": seconds,
    }


def read(paths: list[Path]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for path in paths:
        if path.exists():
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
    return rows


def run_all(path: Path, todo: list[Cell]) -> None:
    done = {tuple(row[f] for f in Cell._fields) for row in read([path])}
    new = not path.exists()
    for cell in todo:
        if cell.key() in done:
            continue
        result = run(cell)
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, [*Cell._fields, *MEASURES])
            if new:
                writer.writeheader()
                new = False
            writer.writerow({**cell._asdict(), **{k: round(v, 5) for k, v in result.items()}})
        print(*cell, *(f"{k}={v:.3f}" for k, v in result.items()), flush=True)


def table(rows: list[dict[str, str]]) -> None:
    """Print the table of docs/baggp.md."""
    header = ["training bags", "data", "r", "splits", "accuracy", "worst"]
    header += ["ECE", "by chance", "log loss", "AP", "resolved", "CPU s"]
    print(f"| {' | '.join(header)} |", "|---" * len(header) + "|", sep="\n")
    for train_size, dataset, r in product(("0.7", "0.5"), DATASETS, "123"):
        group = [row for row in rows if (row["train_size"], row["dataset"], row["r"]) == (train_size, dataset, r)]
        if not group:
            continue
        column = {m: np.array([float(row[m]) for row in group]) for m in MEASURES}
        accuracy = column["accuracy"]
        shown = ("ece", "chance_ece", "log_loss", "instance_ap", "resolve_accuracy")
        row = [f"{float(train_size):.0%}", dataset.replace("*", r"\*"), r, str(len(group))]
        row += [f"{accuracy.mean():.3f} ± {accuracy.std(ddof=len(group) > 1):.3f}", f"{accuracy.min():.3f}"]
        row += [f"{column[m].mean():.3f}" for m in shown]
        print(f"| {' | '.join(row)} | {column['seconds'].mean():.0f} |".replace("nan", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run")
    runner.add_argument("file", type=Path)
    runner.add_argument("--seeds", type=int, nargs="+", default=[30, 31, 32, 33, 34])
    runner.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    runner.add_argument("--train-sizes", type=float, nargs="+", default=[0.7, 0.5])
    runner.add_argument("--part", default="0/1", help="i/k: every k-th cell, from the i-th")
    commands.add_parser("table").add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    if args.command == "table":
        table(read(args.files))
        return
    part, parts = map(int, args.part.split("/"))
    run_all(args.file, list(cells(args.seeds, args.datasets, args.train_sizes))[part::parts])


if __name__ == "__main__":
    main()
