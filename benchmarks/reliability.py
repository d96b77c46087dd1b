"""Reliability curves: how often BagGP and the deep methods are right, against how sure they are.

``python benchmarks/reliability.py fit OUT.csv`` fits each method on the first split of each problem, as the suite
`successors` does, and appends ten rows per fit: the bags of each bin of confidence, their mean confidence and how many
of them are right. What is in OUT.csv is not fitted again. ``--problems fmnist:1`` takes other data sets and r. All but
digits needs raw data (MIPL_DATA).

``python benchmarks/reliability.py draw OUT.csv FIGURE.svg`` draws them and prints calibration errors.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from measure import print_table
from numpy.typing import NDArray

import mipl
from mipl.dataset import MIPLDataset
from mipl.datasets.scaling import min_max

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = ("BagGP", "DEMIPL", "ELIMIPL", "MIPLMA", "ProMIPL", "FastMIPL")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SPLIT, N_BINS = 0, 10


class Bin(NamedTuple):
    """Test bags of one fit whose confidence lies between bin / 10 and (bin + 1) / 10."""

    dataset: str
    r: int
    split: int
    method: str
    bin: int
    bags: int
    confidence: float
    right: int


def bins_of(
    problem: tuple[str, int, int, str], labels: NDArray[np.int64], proba: NDArray[np.floating[Any]]
) -> list[Bin]:
    """The bins of class probabilities (m, q), as `mipl.scoring.calibration_error` makes them."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == labels
    place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    inside = [place == b for b in range(N_BINS)]
    return [
        Bin(*problem, b, int(here.sum()), float(confidence[here].mean()) if here.any() else 0.0, int(right[here].sum()))
        for b, here in enumerate(inside)
    ]


def split_of(dataset: str, r: int) -> tuple[MIPLDataset, ...]:
    """The training and test bags of the suite `successors`."""
    parts = mipl.load(dataset, r=r).split(train_size=0.7, seed=SPLIT)
    return min_max(*parts) if dataset in ("birdsong", "sival") else parts


def fit(out: Path, problems: Iterable[str]) -> None:
    for text in problems:
        dataset, r = text.split(":")
        done = {row.method for row in read(out) if (row.dataset, row.r) == (dataset, int(r))}
        for method in (name for name in METHODS if name not in done):
            train, test = split_of(dataset, int(r))
            assert test.labels is not None
            model = mipl.make(method, random_state=SPLIT).fit(train.bags, train.candidates)
            append(out, bins_of((dataset, int(r), SPLIT, method), test.labels, model.predict_proba(test.bags)))


def draw(out: Path, figure_file: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = read(out)
    problems = list(dict.fromkeys((row.dataset, row.r) for row in rows))
    style = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
    with mpl.rc_context({**style, "svg.hashsalt": "mipl"}):
        figure = Figure(figsize=(2.5 * len(problems) + 1.1, 2.9), layout="constrained")
        axes = figure.subplots(1, len(problems), squeeze=False, sharey=True)[0]
        for ax, (dataset, r) in zip(axes, problems, strict=True):
            panel(ax, [row for row in rows if (row.dataset, row.r) == (dataset, r)])
            ax.set(title=f"{dataset}, r = {r}", xlabel="Confidence", xlim=(0, 1.03), ylim=(0, 1.03))
            ax.set_aspect("equal")
        axes[0].set_ylabel("Share of right answers")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
        dated: dict[str, Any] = {"metadata": {"Date": None}} if figure_file.suffix == ".svg" else {}
        figure.savefig(figure_file, dpi=150, bbox_inches="tight", **dated)
    errors = [(d, r, *(calibration_error(rows, d, r, m) for m in METHODS)) for d, r in problems]
    print_table("Calibration error, ten bins, one split", ["data", "r", *METHODS], errors)


def panel(ax: Axes, rows: list[Bin]) -> None:
    """A line per method through its bins with at least three bags; the area of a marker is the share of bags."""
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, zorder=1)
    for method, colour in zip(METHODS, COLOURS, strict=True):
        found = [row for row in rows if row.method == method and row.bags >= 3]
        total = sum(row.bags for row in found)
        x, y = [row.confidence for row in found], [row.right / row.bags for row in found]
        ours = method == "BagGP"
        ax.plot(
            x, y, color=colour, linewidth=2 if ours else 1, label=method, zorder=3 if ours else 2, marker="o", ms=2.5
        )
        ax.scatter(x, y, s=[260 * row.bags / total for row in found], color=colour, alpha=0.35, linewidth=0, zorder=2)


def calibration_error(rows: list[Bin], dataset: str, r: int, method: str) -> float:
    found = [row for row in rows if (row.dataset, row.r, row.method) == (dataset, r, method)]
    gaps = sum(abs(row.right - row.bags * row.confidence) for row in found)
    return gaps / max(sum(row.bags for row in found), 1) if found else float("nan")


def read(out: Path) -> list[Bin]:
    if not out.exists():
        return []
    with out.open(newline="") as file:
        return [
            Bin(d, int(r), int(s), m, int(b), int(n), float(c), int(k)) for d, r, s, m, b, n, c, k in csv.reader(file)
        ]


def append(out: Path, rows: Iterable[Bin]) -> None:
    with out.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["fit", "draw"])
    parser.add_argument("out", type=Path)
    parser.add_argument("figure", type=Path, nargs="?", default=Path("reliability.svg"))
    parser.add_argument("--problems", nargs="+", default=["birdsong:3", "sival:3"])
    args = parser.parse_args()
    fit(args.out, args.problems) if args.command == "fit" else draw(args.out, args.figure)
