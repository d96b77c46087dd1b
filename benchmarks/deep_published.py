"""The published presets of the deep methods beside the published means, on bags of ours.

    python benchmarks/deep_published.py results/deep-published.csv                        # all, from the cheapest on
    python benchmarks/deep_published.py results/deep-published.csv --datasets birdsong sival --methods ELIMIPL
    python benchmarks/deep_published.py results/deep-published.csv --splits 1             # one split of each first
    python benchmarks/deep_published.py results/deep-published.csv --show                 # the table of what is done

Every method on every data set that its authors' repository has settings for, r = 1, 2, 3, three splits at 70/30, bags
drawn anew for each. Steps are of 16 bags at the published rate per bag, which on tables ends where steps of one bag do
(docs/deep-methods.md) in a sixth of the time, and on images once did not (``deep_habits.py steps``); FastMIPL's are of
all bags, as published. A finished fit is appended to the file and not run again. Needs the raw data (MIPL_DATA).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fit_store import FitStore
from measure import print_table

import mipl
from mipl.bench.analysis.published import published
from mipl.deep import DEMIPL, ELIMIPL, MIPLMA, FastMIPL, ProMIPL
from mipl.deep.base import DeepMIPL

TABLES, IMAGES = ("birdsong", "sival"), ("mnist", "fmnist")
#: Where the authors' repositories give settings; from the cheapest on.
PRESETS: list[tuple[type[DeepMIPL], tuple[str, ...]]] = [
    (ELIMIPL, TABLES),
    (ELIMIPL, IMAGES),
    (MIPLMA, ("mnist",)),
    (ProMIPL, ("mnist",)),
    (DEMIPL, ("mnist",)),
    (FastMIPL, TABLES),
    (FastMIPL, IMAGES),
]
KEYS, FIGURES = ("method", "dataset", "r", "split"), ("accuracy", "cpu_seconds")


class Cell(NamedTuple):
    """One preset on one split, the split being the seed of the bags and of the network, too."""

    method: type[DeepMIPL]
    dataset: str
    r: int
    split: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        """How the file of results names it."""
        return self.method.name, self.dataset, self.r, self.split

    def run(self) -> dict[str, float]:
        """Accuracy and CPU seconds of a fit."""
        bags = mipl.load(self.dataset, r=self.r, seed=self.split)
        train, test = bags.split(train_size=0.7, seed=self.split)
        steps = {} if self.method is FastMIPL else {"batch_size": 16}
        model = self.method.paper(self.dataset, self.r, **steps, random_state=self.split)
        start = time.process_time()
        model.fit(train)
        spent = time.process_time() - start
        return {"accuracy": model.score(test), "cpu_seconds": spent}


def show(store: FitStore) -> None:
    """Means of what is done beside the published ones."""
    done, theirs, rows = store.rows(), published(0.7), []
    for method, datasets in PRESETS:
        for dataset in datasets:
            for r in (1, 2, 3):
                cell = (method.name, dataset, str(r))
                found = [row for row in done if (row["method"], row["dataset"], row["r"]) == cell]
                if not found:
                    continue
                ours = np.array([float(row["accuracy"]) for row in found])
                cpu = float(np.mean([float(row["cpu_seconds"]) for row in found]))
                figure = theirs.get((method.name, "", dataset, r))
                beside = "–" if figure is None else f"{figure.mean:.3f}{'' if figure.confirmed else '†'}"
                by_split = " ".join(f"{accuracy:.3f}" for accuracy in ours)
                rows.append((method.name, dataset, r, by_split, float(ours.mean()), beside, cpu))
    print_table("Published presets, 70/30", ["", "data", "r", "ours, by split", "mean", "published", "CPU s"], rows)
    print("†: as recalled, not confirmed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the file of results")
    parser.add_argument("--datasets", nargs="+", default=[*TABLES, *IMAGES])
    parser.add_argument("--methods", nargs="+", default=[method.name for method, _ in PRESETS])
    parser.add_argument("--r", nargs="+", type=int, default=[1, 2, 3], help="numbers of false labels")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--show", action="store_true", help="run nothing")
    given = parser.parse_args()
    store = FitStore(given.out, KEYS, FIGURES)
    for method, datasets in PRESETS:
        cells = [
            Cell(method, dataset, r, split) for split in range(given.splits) for dataset in datasets for r in given.r
        ]
        for cell in cells:
            wanted = method.name in given.methods and cell.dataset in given.datasets
            if wanted and not given.show and not store.has(cell.key):
                store.append(cell.key, cell.run())
    show(store)


if __name__ == "__main__":
    main()
