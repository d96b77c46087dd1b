"""Whether labelling in the order of `next_to_label` raises accuracy faster than at random and than by entropy.

    MIPL_DATA=... python benchmarks/next_to_label.py --seeds 0 1 2 3

A model is fitted to bags with many false candidates. Then a person, who always answers rightly, labels a batch of bags,
the model is fitted anew, and so on; the next batch is chosen by the new model. Per step: accuracy on test bags, and on
the training bags that are not labelled yet. The table has the means over the steps after the first fit (the area under
the curve) and paired differences to `next_to_label` over seeds and problems, with standard errors.

Rows are appended to --out as they are made, and what is there already is not made again. The models are small (400
landmarks, rank 200, two folds) so that hundreds of fits are affordable.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from measure import print_table

import mipl
from mipl.labelling import entropies

#: Data set, false candidates per bag, training bags, test bags.
PROBLEMS = {
    "birdsong": (4, 130, 400),
    "fmnist": (3, 90, 250),
    "newsgroups": (2, 200, 400),
}
ORDERS = ("random", "entropy", "next_to_label")
COLUMNS = ("problem", "seed", "order", "labelled", "test", "rest")
BATCH, STEPS = 15, 3


def fit(train: mipl.MIPLDataset, candidates: np.ndarray) -> mipl.BagGP:
    return mipl.BagGP(n_landmarks=400, rank=200, cross_fit=2).fit(train.bags, candidates)


def choose(order: str, model: mipl.BagGP, train: mipl.MIPLDataset, open_: np.ndarray, seed: int) -> np.ndarray:
    """The next bags to label among those that are open."""
    if order == "random":
        mixed = np.random.default_rng(seed).permutation(len(train))
        return mixed[open_[mixed]][:BATCH]
    if order == "entropy":
        return np.argsort(-np.where(open_, entropies(model.posterior_), -1.0), kind="stable")[:BATCH]
    rank = model.label_order(train.bags, model.posterior_).rank
    return np.argsort(np.where(open_, rank, len(rank)), kind="stable")[:BATCH]


def curves(problem: str, seed: int, done: set[tuple[str, int, str]]) -> list[tuple[object, ...]]:
    """One row per order and step, for the orders that are not done."""
    wanted = [order for order in ORDERS if (problem, seed, order) not in done]
    if not wanted:
        return []
    r, n_train, n_test = PROBLEMS[problem]
    train, test = mipl.load(problem, r=r, seed=seed).split(0.5, seed=seed)
    train, test = train[:n_train], test[:n_test]
    assert train.labels is not None
    first = fit(train, train.candidates)
    rows: list[tuple[object, ...]] = []
    for order in wanted:
        model, candidates, open_ = first, train.candidates.copy(), np.ones(len(train), dtype=bool)
        for step in range(STEPS + 1):
            if step:
                picked = choose(order, model, train, open_, seed)
                open_[picked] = False
                candidates[picked] = np.eye(train.n_classes, dtype=bool)[train.labels[picked]]
                model = fit(train, candidates)
            right = model.posterior_.argmax(axis=1) == train.labels
            score = model.score(test.bags, test.labels)
            rows.append((problem, seed, order, step * BATCH, round(score, 4), round(float(right[open_].mean()), 4)))
    return rows


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def areas(rows: list[dict[str, str]], figure: str) -> dict[tuple[str, str], dict[str, float]]:
    """Means over the steps after the first fit, by problem and seed, and by order; complete ones only."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        if row["labelled"] != "0":
            found.setdefault((row["problem"], row["seed"]), {}).setdefault(row["order"], []).append(float(row[figure]))
    return {key: {o: float(np.mean(v)) for o, v in by.items()} for key, by in found.items() if len(by) == len(ORDERS)}


def table(rows: list[dict[str, str]]) -> None:
    """Means by problem, and paired differences over all problems and seeds."""
    for figure, title in (("test", "accuracy on test bags"), ("rest", "accuracy on training bags not labelled yet")):
        area = areas(rows, figure)
        lines = []
        for problem in [p for p in PROBLEMS if any(key[0] == p for key in area)]:
            of = [by for key, by in area.items() if key[0] == problem]
            lines.append([f"{problem} ({len(of)} seeds)", *(f"{np.mean([by[o] for by in of]):.3f}" for o in ORDERS)])
        differences = ["next_to_label minus this"]
        for order in ORDERS[:-1]:
            gaps = [by[ORDERS[-1]] - by[order] for by in area.values()]
            error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
            differences.append(f"{np.mean(gaps):+.3f} ± {error:.3f}, {sum(g > 0 for g in gaps)} of {len(gaps)} better")
        print_table(title, ["", *ORDERS], [*lines, [*differences, ""]])


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """The curves, means over seeds."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "mipl"
    problems = [p for p in PROBLEMS if any(row["problem"] == p for row in rows)]
    figure, axes = plt.subplots(2, len(problems), figsize=(3.2 * len(problems), 5), sharex=True, squeeze=False)
    styles = {"random": ("0.6", ":"), "entropy": ("tab:orange", "--"), "next_to_label": ("tab:blue", "-")}
    for column, problem in enumerate(problems):
        for line, (name, title) in enumerate((("test", "test bags"), ("rest", "training bags not labelled yet"))):
            axis = axes[line, column]
            for order in ORDERS:
                mine = [row for row in rows if row["problem"] == problem and row["order"] == order]
                steps = sorted({int(row["labelled"]) for row in mine})
                means = [np.mean([float(row[name]) for row in mine if int(row["labelled"]) == s]) for s in steps]
                colour, dash = styles[order]
                axis.plot(steps, means, dash, color=colour, marker="o", markersize=3, label=order)
            axis.set_title(f"{problem}: {title}", fontsize=9)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("labelled bags")
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("accuracy")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path, default=Path("results/next-to-label.csv"))
    parser.add_argument("--figure", type=Path, help="draw the curves to this file")
    args = parser.parse_args()
    for seed in args.seeds:
        for problem in args.problems:
            known = read(args.out)
            done = {(row["problem"], int(row["seed"]), row["order"]) for row in known}
            rows = curves(problem, seed, done)
            with args.out.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([*([] if known else [COLUMNS]), *rows])
    rows = read(args.out)
    table(rows)
    if args.figure is not None:
        draw(rows, args.figure)


if __name__ == "__main__":
    main()
