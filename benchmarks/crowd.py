"""Several methods on data that are ambiguous by nature: `cifar10h` (votes) and `birdsong-natural` (species noted).

    MIPL_DATA=... python benchmarks/crowd.py --splits 2 --out results/crowd.csv

`cifar10h`: 1,000 photographs, half of them for training. Accuracy on the others, and of the labels given to
the training photographs with more than one candidate; BagGP once with the votes and once with the sets alone, as the
other methods have them. `birdsong-natural`: all 548 recordings, half of them for training; features scaled to the range
of the training recordings. Accuracy of labelled syllables by `predict_instances`: in new recordings among all 13
species, in training recordings among the species noted. Methods for bags as a whole judge a syllable as a bag of its
own; BagGP sees it in its recording. Rows are appended to --out, and what is there already is not
made again.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from measure import print_table

import mipl
from mipl.datasets import min_max

METHODS = ("BagGP", "BagGP, sets alone", "ELIMIPL", "PL-AGGD", "SURE", "PL-kNN")
COLUMNS = ("data", "split", "method", "new", "training", "seconds")


def photographs(split: int) -> tuple[mipl.MIPLDataset, mipl.MIPLDataset]:
    return mipl.load("cifar10h", n_bags=1000, seed=split).split(0.5, seed=split)


def recordings(split: int) -> tuple[mipl.MIPLDataset, mipl.MIPLDataset]:
    return min_max(*mipl.load("birdsong-natural").split(0.5, seed=split))


def measure(data: str, split: int, method: str) -> tuple[float, float, float]:
    """Accuracy on new bags, accuracy on training bags, and seconds of processor time to fit."""
    train, test = photographs(split) if data == "cifar10h" else recordings(split)
    start = time.process_time()
    model = mipl.make(method.split(",")[0])
    if method.endswith("sets alone"):
        model.fit(train.bags, train.candidates)
    else:
        model.fit(train)
    seconds = time.process_time() - start
    if data == "cifar10h":
        ambiguous = train[train.candidates.sum(axis=1) > 1]
        found = model.resolve(ambiguous.bags, ambiguous.candidates).argmax(axis=1)
        return model.score(test), float(np.mean(found == ambiguous.labels)), seconds
    return syllables(model, test, noted=False), syllables(model, train, noted=True), seconds


def syllables(model: mipl.MIPLClassifier, data: mipl.MIPLDataset, noted: bool) -> float:
    """The share of labelled syllables whose most probable species is right, by `predict_instances`."""
    probabilities = model.predict_instances(data.bags)[:, :-1]
    if noted:
        probabilities = np.where(data.bags.spread(data.candidates), probabilities, -1.0)
    assert data.instance_labels is not None
    known = data.instance_labels >= 0
    return float(np.mean(probabilities.argmax(axis=1)[known] == data.instance_labels[known]))


def chance(data: str, splits: int) -> str:
    """What guessing evenly among the candidates gives on training bags."""
    shares = []
    for split in range(splits):
        train, _ = photographs(split) if data == "cifar10h" else recordings(split)
        counts = train.candidates.sum(axis=1)
        if data == "cifar10h":
            shares.append(np.mean(1 / counts[counts > 1]))
        else:
            assert train.instance_labels is not None
            shares.append(np.mean(1 / train.bags.spread(counts)[train.instance_labels >= 0]))
    return f"{np.mean(shares):.3f}"


def majority(_: str, splits: int) -> str:
    """What the label with most votes gives on training photographs with more than one candidate."""
    shares = []
    for split in range(splits):
        train, _ = photographs(split)
        ambiguous = train[train.candidates.sum(axis=1) > 1]
        assert ambiguous.candidate_weights is not None
        shares.append(np.mean(ambiguous.candidate_weights.argmax(axis=1) == ambiguous.labels))
    return f"{np.mean(shares):.3f}"


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cifar10h", "birdsong-natural"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/crowd.csv"))
    args = parser.parse_args()
    for split in range(args.splits):
        for data in args.data:
            for method in args.methods:
                known = read(args.out)
                done = {(row["data"], int(row["split"]), row["method"]) for row in known}
                votes_differ = data == "cifar10h" or not method.endswith("sets alone")
                if (data, split, method) in done or not votes_differ:
                    continue
                row = (data, split, method, *(f"{value:.4f}" for value in measure(data, split, method)))
                with args.out.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file, lineterminator="\n").writerows([*([] if known else [COLUMNS]), row])
    rows = read(args.out)
    for data in args.data:
        lines = []
        for method in METHODS:
            mine = [row for row in rows if row["data"] == data and row["method"] == method]
            if mine:
                figures = [f"{np.mean([float(row[name]) for row in mine]):.3f}" for name in COLUMNS[3:]]
                lines.append([method, len(mine), *figures])
        splits = max(line[1] for line in lines) if lines else 0
        for name, reference in (("chance among the candidates", chance), ("majority vote", majority)):
            if splits and (reference is chance or data == "cifar10h"):
                lines.append([name, splits, "", reference(data, splits), ""])
        print_table(data, ["method", "splits", "new", "training", "CPU s of the fit"], lines)


if __name__ == "__main__":
    main()
