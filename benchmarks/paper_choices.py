"""Which construction of a data set the paper's figures speak for: mean differences to them, method by method.

    python benchmarks/paper_choices.py paper-newsgroups --store results/results.csv
    python benchmarks/paper_choices.py paper-scaling --store results/results.csv

Columns are the constructions that the suite compares. A row is the mean absolute difference between our mean accuracy
and the published one, over the r that every construction of that data set has; the last rows are means over methods.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from measure import print_table

from mipl.bench import load_suite
from mipl.bench.analysis import Results
from mipl.bench.analysis.published import published

KERNEL_METHODS = ("SURE", "PL-AGGD")
LINEAR_METHODS = ("CLPL", "LSB-CMM")
NEIGHBOUR_METHODS = ("PL-kNN", "GM-PLL")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--store", type=Path, default=Path("results/results.csv"))
    args = parser.parse_args()
    results = Results.read(load_suite(args.suite), args.store)
    suite, theirs = results.suite, published(0.5)
    differences: dict[tuple[str, str], float] = {}
    for m in suite.methods:
        for load in dict.fromkeys(d.load for d in suite.datasets):
            columns = [d.label for d in suite.datasets if d.load == load]
            common = [r for r in suite.r if all((label, r, m.name) in results.summaries for label in columns)]
            for label in columns if common else []:
                found = (results.summaries[label, r, m.name].accuracy.mean for r in common)
                gaps = [
                    abs(ours - theirs[m.label, m.group, load, r].mean) for ours, r in zip(found, common, strict=True)
                ]
                differences[m.name, label] = float(np.mean(gaps))
    labels = suite.dataset_labels
    rows = [[m.name, *(differences.get((m.name, d), "") for d in labels)] for m in suite.methods]
    for what, names in (
        ("kernel methods", KERNEL_METHODS),
        ("linear methods", LINEAR_METHODS),
        ("neighbours", NEIGHBOUR_METHODS),
        ("all of these", (*KERNEL_METHODS, *LINEAR_METHODS, *NEIGHBOUR_METHODS)),
    ):
        chosen = [m.name for m in suite.methods if m.label in names]
        rows.append([what, *(float(np.mean([differences[name, d] for name in chosen])) for d in labels)])
    print_table(suite.title, ["", *labels], rows)


if __name__ == "__main__":
    main()
