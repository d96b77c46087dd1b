"""MIPLGP's weights and accuracy by the number of steps: Eq. 3 against the bag posterior, on MNIST bags.

    python benchmarks/miplgp_steps.py --steps 1 2 3 5 10 20 50

Each row is a fit of its own with so many steps of Adam, from the median distance, on half of the bags. Accuracy at the
paper's settings: ``mipl bench run variants``. Needs the raw data (MIPL_DATA).
"""

from __future__ import annotations

import argparse

import numpy as np
from measure import measure, print_table

import mipl


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 3, 5, 10, 20, 50])
    parser.add_argument("--disambiguation", nargs="+", default=["softmax", "bag"])
    parser.add_argument("--r", type=int, default=1)
    args = parser.parse_args()
    train, test = mipl.load("mnist", r=args.r).split(0.5, seed=0)
    rows = []
    for name in args.disambiguation:
        for steps in args.steps:
            model = mipl.MIPLGP(disambiguation=name, max_iter=steps, n_probes=1)
            fit = measure(lambda model=model: model.fit(train.bags, train.candidates))
            row = [name, steps, float(model.weights_[:, -1].mean()), float(model.weights_[:, :-1].max())]
            for over in ("classes", "augmented"):
                model.normalize_over = over
                row.append(float(np.mean(model.predict(test.bags) == test.labels)))
            rows.append([*row, fit.seconds])
    header = [
        "weights",
        "steps",
        "mean weight of negative",
        "largest other",
        "accuracy",
        "accuracy, augmented",
        "fit s",
    ]
    print_table(f"MIPLGP by the number of steps, MNIST, r = {args.r}", header, rows)


if __name__ == "__main__":
    main()
