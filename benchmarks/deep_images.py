"""Deep methods on images: scaled convolutions against those as published, in time and accuracy.

``python benchmarks/deep_images.py OUT.csv --dataset mnist --r 2 --methods ELIMIPL`` fits with
`scaled_convolutions=True` for 25 epochs and with `scaled_convolutions=False` for 100, all else being the defaults. The
bags are drawn with seeds from 100 on, which no suite uses: 350 training bags, the rest of the draw and the 500 bags of
a second draw for testing. ``--thin 4`` keeps a quarter of each bag's instances, positive and negative alike, and
``--crop 4`` cuts four pixels from each side, which takes a fifteenth of the time. Fits in OUT.csv are not run again.
Needs raw data (MIPL_DATA).
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import print_table
from numpy.typing import NDArray

import mipl
from mipl.bags import Bags
from mipl.scoring import log_loss

N_TRAIN, SECOND_DRAW = 350, 50
VARIANTS = {"scaled": {"scaled_convolutions": True}, "as published": {"scaled_convolutions": False}}
HEADER = ["bags", "method", "convolutions", "accuracy", "log loss", "training bags resolved", "CPU s"]


class Draw(NamedTuple):
    """Bags of images."""

    bags: list[NDArray[Any]]
    candidates: NDArray[np.bool_]
    labels: NDArray[np.int64]


def draw(dataset: str, r: int, seed: int, thin: int, crop: int) -> Draw:
    data = mipl.load(dataset, r=r, seed=seed)
    assert data.labels is not None
    assert data.instance_labels is not None
    rng = np.random.default_rng(seed)
    images = data.bags.instances.reshape(-1, *data.bags.instance_shape)
    images = images[:, crop : images.shape[1] - crop, crop : images.shape[2] - crop]
    positive = data.instance_labels != data.n_classes
    bags = []
    for start, stop in zip(data.bags.offsets[:-1], data.bags.offsets[1:], strict=True):
        rows = np.arange(start, stop)
        parts = [rows[positive[rows]], rows[~positive[rows]]]
        kept = [rng.choice(part, max(1, round(len(part) / thin)), replace=False) for part in parts if len(part)]
        bags.append(images[np.sort(np.concatenate(kept))])
    return Draw(bags, data.candidates, data.labels)


def compare(out: Path, args: argparse.Namespace) -> None:
    first = draw(args.dataset, args.r, args.seed, args.thin, args.crop)
    second = draw(args.dataset, args.r, args.seed + SECOND_DRAW, args.thin, args.crop)
    order = np.random.default_rng(args.seed).permutation(len(first.bags))
    train, rest = order[:N_TRAIN], order[N_TRAIN:]
    test = Bags.from_list([*(first.bags[i] for i in rest), *second.bags])
    labels = np.concatenate([first.labels[rest], second.labels])
    name = f"{args.dataset} r={args.r} seed={args.seed} thin={args.thin} crop={args.crop}"
    for method in args.methods:
        for variant, params in VARIANTS.items():
            if (name, method, variant) in {tuple(row[:3]) for row in read(out)}:
                continue
            model = mipl.make(method, random_state=args.seed, **params)
            start = time.process_time()
            model.fit(Bags.from_list([first.bags[i] for i in train]), first.candidates[train])
            cpu = time.process_time() - start
            proba = model.predict_proba(test)
            resolved = np.mean(model.weights_.argmax(axis=1) == first.labels[train])
            accuracy = np.mean(proba.argmax(axis=1) == labels)
            row = (name, method, variant, accuracy, log_loss(labels, proba), resolved, round(cpu, 1))
            with out.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(row)
    print_table("Development bags of images", HEADER, [(*row[:3], *map(float, row[3:])) for row in read(out)])


def read(out: Path) -> list[list[str]]:
    if not out.exists():
        return []
    with out.open(newline="") as file:
        return list(csv.reader(file))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dataset", default="fmnist")
    parser.add_argument("--r", type=int, default=1)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--thin", type=int, default=1)
    parser.add_argument("--crop", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=["DEMIPL", "ELIMIPL", "MIPLMA", "ProMIPL", "FastMIPL"])
    arguments = parser.parse_args()
    compare(arguments.out, arguments)
