"""The deep methods: speed of mini-batches of bags, agreement with the authors' programs, what each quirk does.

``python benchmarks/deep.py speed`` trains ELIMIPL's published network on SIVAL-MIPL one bag at a time and in
mini-batches of bags: CPU seconds per epoch, their ratio, and the accuracy after all epochs.

``python benchmarks/deep.py fidelity OUT.csv`` fits the published presets on bags on which the authors' own training
steps were run, and prints both accuracies. Every finished fit is appended to OUT.csv and not run again.

``python benchmarks/deep.py quirks OUT.csv digits|sival`` switches the peculiarities of the released programs on, one by
one, from the defaults; resumable in the same way. Digits come with scikit-learn, all else needs raw data (MIPL_DATA).
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measure import print_table

import mipl
from mipl.dataset import MIPLDataset
from mipl.deep import DEMIPL, ELIMIPL, MIPLMA, FastMIPL, ProMIPL
from mipl.deep.base import DeepMIPL

SEED = 901


class Cell(NamedTuple):
    """One fit of a published preset, and the accuracy of the authors' steps on the same bags."""

    method: type[DeepMIPL]
    dataset: str
    r: int
    params: dict[str, Any]
    theirs: float

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        words = [self.method.name, self.dataset, f"r={self.r}", *(f"{k}={v}" for k, v in self.params.items())]
        return " ".join(words)


CELLS = [
    Cell(ELIMIPL, "sival", 3, {}, 0.537),
    Cell(ELIMIPL, "birdsong", 3, {}, 0.728),
    Cell(MIPLMA, "sival", 3, {"learning_rate": 0.05, "margin_weight": 5}, 0.639),
    Cell(DEMIPL, "birdsong", 3, {}, 0.690),
    Cell(ProMIPL, "birdsong", 3, {}, 0.541),
    Cell(ELIMIPL, "sival", 1, {}, 0.688),
    Cell(FastMIPL, "fmnist", 3, {}, 0.860),
    Cell(FastMIPL, "fmnist", 3, {"score_scaling": "train", "dropout_at_prediction": False}, 0.893),
    Cell(ProMIPL, "sival", 3, {}, 0.408),
    Cell(DEMIPL, "sival", 3, {"max_epochs": 200}, 0.463),
    Cell(MIPLMA, "birdsong", 3, {"learning_rate": 0.05, "margin_weight": 1}, 0.710),
    Cell(MIPLMA, "sival", 1, {"learning_rate": 0.05, "margin_weight": 5}, 0.713),
    Cell(ELIMIPL, "fmnist", 1, {}, 0.893),
    Cell(ELIMIPL, "fmnist", 3, {}, 0.240),
]


def bags_of(dataset: str, r: int) -> tuple[MIPLDataset, MIPLDataset]:
    """Training and test bags; tables z-scored over all bags, as the released programs' --normalize does."""
    data = mipl.load(dataset, r=r, seed=SEED)
    if dataset in ("sival", "birdsong"):
        X = data.bags.instances
        data = copy(data)
        data.bags = mipl.Bags((X - X.mean(axis=0)) / X.std(axis=0), data.bags.offsets)
    return data.split(train_size=0.7, seed=SEED)


def fidelity(out: Path) -> None:
    done = _read(out)
    for seed in range(3):
        for cell in CELLS:
            if (cell.key, str(seed)) in done:
                continue
            train, test = bags_of(cell.dataset, cell.r)
            model = cell.method.paper(cell.dataset, cell.r, **{"standardize": False, **cell.params}, random_state=seed)
            start, wall = time.process_time(), time.perf_counter()
            model.fit(train)
            cpu, wall = time.process_time() - start, time.perf_counter() - wall
            _append(out, (cell.key, seed, model.score(test), cell.theirs, round(cpu), round(wall), len(test.bags)))
            done = _read(out)
    show_fidelity(out)


def show_fidelity(out: Path) -> None:
    done = _read(out)
    rows = []
    for cell in CELLS:
        runs = [row for (key, _), row in done.items() if key == cell.key]
        if runs:
            ours = np.array([float(row[2]) for row in runs])
            error = np.sqrt(cell.theirs * (1 - cell.theirs) / int(runs[0][6]))
            shown = " ".join(f"{accuracy:.3f}" for accuracy in ours)
            cpu = float(np.mean([float(row[4]) for row in runs]))
            rows.append((cell.key, shown, float(ours.mean()), cell.theirs, error, cpu))
    header = ["preset", "ours, by seed", "mean", "theirs", "their standard error", "CPU s"]
    print_table("Published presets, same bags", header, rows)


def speed(max_epochs: int = 100) -> None:
    train, test = bags_of("sival", 3)
    rows = []
    reference = None
    for batch_size in (1, 8, 16, 32):
        model = ELIMIPL.paper("sival", 3, standardize=False, batch_size=batch_size, max_epochs=max_epochs)
        start, wall = time.process_time(), time.perf_counter()
        model.fit(train)
        cpu = (time.process_time() - start) / max_epochs
        wall = (time.perf_counter() - wall) / max_epochs
        reference = reference or cpu
        rows.append((f"{batch_size} bags per step", cpu, wall, reference / cpu, model.score(test)))
    title = f"ELIMIPL's published network on SIVAL, r = 3: {train.bags}, {max_epochs} epochs, torch {torch.__version__}"
    print_table(title, ["", "CPU s per epoch", "wall s per epoch", "times faster (CPU)", "accuracy"], rows)


#: Switches of the released programs, one by one; {} is the default.
QUIRKS: list[tuple[type[DeepMIPL], list[dict[str, Any]]]] = [
    (DEMIPL, [{}, {"tied_gate": True}, {"squash_logits": True}]),
    (
        ELIMIPL,
        [
            {},
            {"tied_gate": True},
            {"squash_logits": True},
            {"sparsity_weight": 0.0},
            {"sparsity_weight": 10.0, "exclusion_weight": 10.0},
            {"standardize": False},
        ],
    ),
    (
        MIPLMA,
        [{}, {"tied_gate": True}, {"squash_logits": True}, {"margin": "closed-form"}, {"temperature_decay": 1.0}],
    ),
    (ProMIPL, [{}, {"tied_gate": True}, {"squash_logits": True}, {"temperature_decay": 1.0}]),
    (
        FastMIPL,
        [
            {},
            {"score_scaling": "batch"},
            {"dropout_at_prediction": True},
            {"init_from_own_encoder": False},
            {"renormalize_weights": False},
            # The same steps but for the weight decay: the sum over ten draws is ten times as steep.
            {"average_samples": False, "kl_weight": 1.0, "learning_rate": 0.01},
            {"kl_refresh": 1},
        ],
    ),
]


def quirks(out: Path, dataset: str = "digits") -> None:
    seeds = range(5) if dataset == "digits" else range(1)
    r = 1 if dataset == "digits" else 3
    for seed in seeds:
        first = seed if dataset == "digits" else SEED
        train, test = mipl.load(dataset, r=r, seed=first).split(train_size=0.7, seed=first)
        for method, variants in QUIRKS:
            for params in variants:
                key = " ".join([dataset, method.name, *(f"{k}={v}" for k, v in params.items())])
                if (key, str(seed)) in _read(out):
                    continue
                start = time.process_time()
                model = method(**params, random_state=seed).fit(train)
                proba = model.predict_proba(test.bags)
                row = (key, seed, model.score(test), float(np.mean(proba.max(axis=1))), time.process_time() - start)
                _append(out, row)
    done = _read(out)
    rows = []
    for key in dict.fromkeys(key for key, _ in done if key.startswith(dataset)):
        runs = np.array([row[2:] for (name, _), row in done.items() if name == key], dtype=float)
        rows.append((key, *runs.mean(axis=0).tolist(), len(runs)))
    title = f"Quirks one by one, {dataset}, r = {r}, 70/30"
    print_table(title, ["method and switch", "accuracy", "mean largest probability", "CPU s", "splits"], rows)


def _read(out: Path) -> dict[tuple[str, str], list[str]]:
    if not out.exists():
        return {}
    with out.open(newline="") as file:
        return {(row[0], row[1]): row for row in csv.reader(file)}


def _append(out: Path, row: Iterable[Any]) -> None:
    with out.open("a", newline="") as file:
        csv.writer(file).writerow(row)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "speed":
        speed(*map(int, arguments))
    elif command == "quirks":
        quirks(Path(arguments[0]), *arguments[1:])
    else:
        {"fidelity": fidelity, "show": show_fidelity}[command](Path(arguments[0]))
