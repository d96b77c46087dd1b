"""The deep methods: speed of mini-batches of bags, agreement with the authors' programs, what each quirk does.

``python benchmarks/deep.py speed`` trains the published attention networks on SIVAL-MIPL one bag at a time and in
mini-batches of bags: CPU seconds per epoch and their ratio. ``python benchmarks/deep.py batches OUT.csv`` gives the
accuracies that go with it: ELIMIPL on SIVAL, r = 1, after 20 epochs in steps of 1, 16 and 32 bags, three seeds.

``python benchmarks/deep.py fidelity OUT.csv`` fits the published presets on bags on which the authors' own training
steps were run, and prints both accuracies. Every finished fit is appended to OUT.csv and not run again.
``... fidelity OUT.csv --batch-size 16`` does the same in mini-batches of 16 bags, in a sixth of the time on tables;
``--dataset`` takes one data set, ``--method`` one method, ``--seeds 1`` one seed in place of three.

``python benchmarks/deep.py quirks OUT.csv digits|sival`` switches the peculiarities of the released programs on, one by
one, from the defaults; resumable in the same way. Digits come with scikit-learn, all else needs raw data (MIPL_DATA).

``python benchmarks/deep.py results STORE`` writes what is finished of the suite `successors` in STORE, a store or a CSV
export, to results/successors.csv, and its tables into docs/deep-methods.md between the two marks there.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measure import print_table
from torch.distributions import MultivariateNormal, kl_divergence

import mipl
from mipl.bench.analysis.results import Results
from mipl.bench.output.loss_tables import loss_tables
from mipl.bench.output.render import render
from mipl.bench.output.table import Entry, Row, Table
from mipl.bench.output.tables import accuracy_table, win_tie_loss_table
from mipl.bench.store.csv_file import write_csv
from mipl.bench.store.transfer import read_records
from mipl.bench.suite.files import load_suite
from mipl.dataset import MIPLDataset
from mipl.deep import DEMIPL, ELIMIPL, MIPLMA, FastMIPL, ProMIPL
from mipl.deep.base import DeepMIPL
from mipl.deep.class_weights import JITTER, divergence, log_determinant, sample_weights
from mipl.errors import ParameterError

SEED = 901
#: Parameters that a fit does not ask for.
AT_PREDICTION = ("score_scaling", "dropout_at_prediction")


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
        return self._words(self.params)

    @property
    def fit_key(self) -> str:
        """The same for cells that differ in what they do at prediction alone, for which one fit is enough."""
        return self._words({name: value for name, value in self.params.items() if name not in AT_PREDICTION})

    def preset(self, seed: int) -> DeepMIPL:
        """The published settings on bags that are scaled already."""
        return self.method.paper(self.dataset, self.r, **{"standardize": False, **self.params}, random_state=seed)

    def _words(self, params: dict[str, Any]) -> str:
        return " ".join([self.method.name, self.dataset, f"r={self.r}", *(f"{k}={v}" for k, v in params.items())])


CELLS = [
    Cell(ELIMIPL, "sival", 3, {}, 0.537),
    Cell(ELIMIPL, "birdsong", 3, {}, 0.728),
    Cell(MIPLMA, "sival", 3, {"learning_rate": 0.05, "margin_weight": 5}, 0.639),
    Cell(DEMIPL, "birdsong", 3, {}, 0.690),
    Cell(DEMIPL, "birdsong", 3, {"entropy_weight": 1e-3}, 0.690),
    Cell(ProMIPL, "birdsong", 3, {}, 0.541),
    Cell(ELIMIPL, "sival", 1, {}, 0.688),
    Cell(FastMIPL, "fmnist", 3, {}, 0.860),
    Cell(FastMIPL, "fmnist", 3, {"score_scaling": "train", "dropout_at_prediction": False}, 0.893),
    Cell(ProMIPL, "sival", 3, {}, 0.408),
    Cell(DEMIPL, "sival", 3, {"max_epochs": 200}, 0.463),
    Cell(DEMIPL, "sival", 3, {"max_epochs": 200, "entropy_weight": 1e-3}, 0.463),
    Cell(MIPLMA, "birdsong", 3, {"learning_rate": 0.05, "margin_weight": 1}, 0.710),
    Cell(MIPLMA, "sival", 1, {"learning_rate": 0.05, "margin_weight": 5}, 0.713),
    Cell(ELIMIPL, "fmnist", 1, {}, 0.893),
    Cell(ELIMIPL, "fmnist", 3, {}, 0.240),
    Cell(MIPLMA, "fmnist", 3, {}, 0.240),
]


def bags_of(dataset: str, r: int) -> tuple[MIPLDataset, MIPLDataset]:
    """Training and test bags; tables z-scored over all bags, as the released programs' --normalize does."""
    data = mipl.load(dataset, r=r, seed=SEED)
    if dataset in ("sival", "birdsong"):
        data = scaled_by_all(data)
    return data.split(train_size=0.7, seed=SEED)


def scaled_by_all(data: MIPLDataset) -> MIPLDataset:
    """The data set with each feature at mean 0 and deviation 1 over all bags."""
    X = data.bags.instances
    data = copy(data)
    data.bags = mipl.Bags((X - X.mean(axis=0)) / X.std(axis=0), data.bags.offsets)
    return data


def fidelity(out: Path, batch_size: int | None, dataset: str | None, method: str | None, seeds: int) -> None:
    cells = [cell for cell in CELLS if dataset in (None, cell.dataset) and method in (None, cell.method.name)]
    if batch_size is not None:
        cells = [in_mini_batches(cell, batch_size) for cell in cells]
    for seed in range(seeds):
        for cell in cells:
            alike = [
                other for other in cells if other.fit_key == cell.fit_key and (other.key, str(seed)) not in _read(out)
            ]
            if not alike:
                continue
            train, test = bags_of(cell.dataset, cell.r)
            model = alike[0].preset(seed)
            start, wall = time.process_time(), time.perf_counter()
            model.fit(train)
            cpu, wall = time.process_time() - start, time.perf_counter() - wall
            for other in alike:
                accuracy = model.set_params(**other.preset(seed).get_params()).score(test)
                _append(out, (other.key, seed, accuracy, other.theirs, round(cpu), round(wall), len(test.bags)))
    show_fidelity(out, cells)


def in_mini_batches(cell: Cell, batch_size: int) -> Cell:
    """A preset with mini-batches of bags in place of one-bag steps; FastMIPL's steps are of all bags in any case."""
    if cell.method is FastMIPL:
        return cell
    return cell._replace(params={**cell.params, "batch_size": batch_size})


def show_fidelity(out: Path, cells: Iterable[Cell]) -> None:
    done = _read(out)
    rows = []
    for cell in cells:
        runs = [row for (key, _), row in done.items() if key == cell.key]
        if runs:
            ours = np.array([float(row[2]) for row in runs])
            error = np.sqrt(cell.theirs * (1 - cell.theirs) / int(runs[0][6]))
            shown = " ".join(f"{accuracy:.3f}" for accuracy in ours)
            cpu = float(np.mean([float(row[4]) for row in runs]))
            rows.append((cell.key, shown, float(ours.mean()), cell.theirs, error, cpu))
    header = ["preset", "ours, by seed", "mean", "theirs", "their standard error", "CPU s"]
    print_table("Published presets, same bags", header, rows)


def speed() -> None:
    train, _ = bags_of("sival", 3)
    sizes = (1, 8, 16, 32)
    rows = []
    for method in (ELIMIPL, DEMIPL, MIPLMA, ProMIPL):
        best = dict.fromkeys(sizes, float("inf"))
        for _ in range(3):  # in turn, so that a noisy moment does not hit one of them alone
            for size in sizes:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message=".* give no settings")
                    model = method.paper("sival", 3, standardize=False, batch_size=size, max_epochs=2)
                start = time.process_time()
                model.fit(train)
                best[size] = min(best[size], (time.process_time() - start) / 2)
        times = [best[1] / best[size] for size in sizes[1:]]
        rows.append((method.name, *(best[size] for size in sizes), *times))
    header = ["", *(f"{size} per step" for size in sizes), *(f"1 / {size}" for size in sizes[1:])]
    print_table(f"CPU seconds per epoch and their ratios, published networks, SIVAL r = 3, {train.bags}", header, rows)
    posterior()


def batches(out: Path) -> None:
    train, test = bags_of("sival", 1)
    sizes = (1, 16, 32)
    for seed in range(3):
        for size in sizes:
            if (str(size), str(seed)) not in _read(out):
                model = ELIMIPL.paper("sival", 1, standardize=False, batch_size=size, max_epochs=20, random_state=seed)
                _append(out, (size, seed, model.fit(train).score(test)))
    done = _read(out)
    rows = [(size, *(float(done[str(size), str(seed)][2]) for seed in range(3))) for size in sizes]
    header = ["bags per step", "seed 0", "seed 1", "seed 2", "mean"]
    print_table("ELIMIPL, SIVAL r = 1, 20 epochs", header, [(*row, float(np.mean(row[1:]))) for row in rows])


def posterior(q: int = 25, k: int = 512, n_samples: int = 30) -> None:
    """FastMIPL's samples and KL with gradients, for SIVAL's 25 classes and 2 L = 512."""
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(q, k, generator=generator).requires_grad_()
    factor = 0.3 * torch.eye(k) + 1e-4 * torch.randn(q, k, k, generator=generator)
    factor.requires_grad_()
    log_scale = torch.zeros(q, k)
    expansion = log_determinant(factor)

    def library() -> torch.Tensor:
        covariance = factor @ factor.mT + JITTER * torch.eye(k)
        normal = MultivariateNormal(mean, covariance)
        prior = MultivariateNormal(torch.zeros(q, k), torch.diag_embed(torch.exp(2 * log_scale)))
        return normal.rsample((n_samples,)).sum() + kl_divergence(normal, prior).sum()

    def ours(refresh: bool) -> torch.Tensor:
        log_det = (log_determinant(factor) if refresh else expansion).at(factor)
        samples = sample_weights(mean, factor, n_samples, generator)
        return samples.sum() + divergence(mean, factor, log_det, log_scale).sum()

    rows = []
    reference = None
    for name, call in (
        ("torch.distributions", library),
        ("one factorisation", lambda: ours(True)),
        ("between factorisations", lambda: ours(False)),
    ):
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            torch.autograd.grad(call(), (mean, factor))
            best = min(best, time.process_time() - start)
        reference = reference or best
        rows.append((name, best, reference / best))
    print_table(f"Samples and KL of {q} posteriors of size {k}, with gradients", ["", "CPU s", "times faster"], rows)


#: Switches of the released programs, one by one; {} is the default.
QUIRKS: list[tuple[type[DeepMIPL], list[dict[str, Any]]]] = [
    (DEMIPL, [{}, {"tied_gate": True}, {"squash_logits": True}, {"entropy_weight": 1e-3}]),
    (
        ELIMIPL,
        [
            {},
            {"tied_gate": True},
            {"squash_logits": True},
            {"sparsity_weight": 0.0},
            {"sparsity_weight": 10.0, "exclusion_weight": 10.0},
        ],
    ),
    (
        MIPLMA,
        [{}, {"tied_gate": True}, {"squash_logits": True}, {"margin": "closed-form"}, {"min_deviation": 1e-8}],
    ),
    (
        ProMIPL,
        [{}, {"tied_gate": True}, {"squash_logits": True}, {"temperature_decay": 1.0}, {"min_deviation": 1e-8}],
    ),
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


def quirks(out: Path, dataset: str) -> None:
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
                try:
                    model = method(**params, random_state=seed).fit(train)
                    figures = model.score(test), float(np.mean(model.predict_proba(test.bags).max(axis=1)))
                except ParameterError:  # the loss is no number any more
                    figures = np.nan, np.nan
                _append(out, (key, seed, *figures, time.process_time() - start))
    done = _read(out)
    rows = []
    for key in dict.fromkeys(key for key, _ in done if key.startswith(dataset)):
        runs = np.array([row[2:] for (name, _), row in done.items() if name == key], dtype=float)
        rows.append((key, *runs.mean(axis=0).tolist(), len(runs)))
    title = f"Quirks one by one, {dataset}, r = {r}, 70/30"
    print_table(title, ["method and switch", "accuracy", "mean largest probability", "CPU s", "splits"], rows)


ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "deep-methods.md"
EXPORT = ROOT / "results" / "successors.csv"
MARKS = ("<!-- tables of the suite successors: begin -->", "<!-- tables of the suite successors: end -->")


def results(store: Path) -> None:
    records = [record for record in read_records(store) if record.state == "done"]
    write_csv(records, EXPORT)
    whole = Results(load_suite("successors"), records)
    datasets, methods = {place.dataset for place in whole.done}, {place.method for place in whole.done}
    suite = whole.suite.select(datasets=datasets, methods=methods | {whole.suite.reference})
    found = Results(suite, records)
    tables = [accuracy_table(found), *loss_tables(found)]
    if any(place.method == suite.reference for place in found.done):
        tables.append(win_tie_loss_table(found))
    tables.append(cpu_table(found))
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    lines = [MARKS[0], "", *(render(table, "markdown").strip() + "\n" for table in tables), MARKS[1]]
    PAGE.write_text(before + "\n".join(lines) + after, encoding="utf-8")


def cpu_table(found: Results) -> Table:
    """Processor seconds of a fit, which unlike its duration do not depend on what else a machine does."""
    labels = found.suite.dataset_labels
    rows = []
    for m in found.suite.methods:
        seconds = [[s.fit_cpu_seconds for (d, _, name), s in found.summaries.items() if (d, name) == (label, m.name)]
                   for label in labels]  # fmt: skip
        rows.append(Row([Entry(m.name), *(Entry(np.mean(s).item() if s else None, form=".0f") for s in seconds)]))
    return Table(
        caption="Processor seconds of a fit, mean over r and splits.", header=["Algorithm", *labels], rows=rows
    )


def _read(out: Path) -> dict[tuple[str, str], list[str]]:
    if not out.exists():
        return {}
    with out.open(newline="") as file:
        return {(row[0], row[1]): row for row in csv.reader(file)}


def _append(out: Path, row: Iterable[Any]) -> None:
    with out.open("a", newline="") as file:
        csv.writer(file).writerow(row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("speed")
    for name in ("batches", "fidelity", "quirks", "results"):
        commands.add_parser(name).add_argument("file", type=Path)
    commands.choices["quirks"].add_argument("dataset", choices=["digits", "sival"])
    commands.choices["fidelity"].add_argument("--batch-size", type=int)
    commands.choices["fidelity"].add_argument("--dataset")
    commands.choices["fidelity"].add_argument("--method")
    commands.choices["fidelity"].add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.command == "speed":
        speed()
    elif args.command == "batches":
        batches(args.file)
    elif args.command == "quirks":
        quirks(args.file, args.dataset)
    elif args.command == "results":
        results(args.file)
    else:
        fidelity(args.file, args.batch_size, args.dataset, args.method, args.seeds)
