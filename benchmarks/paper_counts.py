"""MIPLGP against the six partial-label methods in the paper's 180 cells: wins, ties and losses, and what is missing.

    python benchmarks/paper_counts.py --store results/results.csv

A cell is a data set, an r, a method and an embedding. Where both have at least three splits, the paper's pairwise
t-test at 5 % decides; beside it stands in how many cells MIPLGP is ahead by mean accuracy on the splits that
both have, for which one is enough. The paper has 179/1/0.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from measure import print_table

from mipl.bench import load_suite
from mipl.bench.analysis import Results
from mipl.bench.analysis.statistics import compare
from mipl.bench.suite.suite import Suite

CELLS_PER_DATASET = 36


def accuracies(suite: Suite, store: Path) -> dict[tuple[str, int | None, str], dict[int, float]]:
    """Accuracy of the finished splits of a method, by data set and r."""
    found: dict[tuple[str, int | None, str], dict[int, float]] = {}
    for place, record in Results.read(suite, store).done.items():
        found.setdefault((place.dataset, place.r, place.method), {})[place.split] = record.outcome.scores["accuracy"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("results/results.csv"))
    args = parser.parse_args()
    suite = load_suite("paper-pll")
    six = accuracies(suite.select(methods=[m.name for m in suite.methods if m.group]), args.store)
    rows = []
    for rule in ("MIPLGP", "MIPLGP (marginal)"):
        ours = accuracies(load_suite("variants").select(methods=[rule]), args.store)
        sums: Counter[str] = Counter()
        for dataset in suite.dataset_labels:
            counts: Counter[str] = Counter()
            behind, splits = [], set()
            for (label, r, name), theirs in six.items():
                mine = ours.get((dataset, r, rule), {})
                common = sorted(set(mine) & set(theirs)) if label == dataset else []
                if not common:
                    continue
                splits.add(len(common))
                ahead = np.mean([mine[s] - theirs[s] for s in common]) > 0
                counts["ahead" if ahead else "behind"] += 1
                behind += [] if ahead else [f"{name} r={r}"]
                counts[compare(mine, theirs).verdict] += 1
            counts["missing"] = CELLS_PER_DATASET - counts["ahead"] - counts["behind"]
            sums += counts
            rows.append([rule, dataset, *_row(counts), "/".join(map(str, sorted(splits))), ", ".join(behind[:5])])
        rows.append([rule, "all", *_row(sums), "", ""])
    header = ["rule", "", "t-tests", "ahead", "not", "missing", "splits", "the first it is not ahead of"]
    print_table("MIPLGP against the six methods (paper: 179/1/0)", header, rows)


def _row(counts: Counter[str]) -> list[str | int]:
    tests = "/".join(str(counts[verdict]) for verdict in ("win", "tie", "loss"))
    return [tests, counts["ahead"], counts["behind"], counts["missing"]]


if __name__ == "__main__":
    main()
