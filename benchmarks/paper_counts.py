"""In how many cells MIPLGP is ahead of the six partial-label methods, by mean accuracy on the splits that both have.

    python benchmarks/paper_counts.py --store results/results.csv

No test is made, so one split suffices; `mipl bench table paper-pll --kind wins` has the paper's t-tests.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from measure import print_table

from mipl.bench import load_suite
from mipl.bench.analysis import Results
from mipl.bench.suite.suite import Suite


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
        for dataset in suite.dataset_labels:
            ahead, behind, splits = 0, [], set()
            for (label, r, name), theirs in six.items():
                mine = ours.get((dataset, r, rule), {})
                common = sorted(set(mine) & set(theirs)) if label == dataset else []
                if common:
                    splits.add(len(common))
                    better = np.mean([mine[s] - theirs[s] for s in common]) > 0
                    ahead += better
                    behind += [] if better else [f"{name} r={r}"]
            rows.append([rule, dataset, ahead, len(behind), "/".join(map(str, sorted(splits))), ", ".join(behind[:5])])
    print_table("Ahead of the six methods", ["rule", "", "ahead", "not", "splits", "the first of these"], rows)


if __name__ == "__main__":
    main()
