"""How well the label-free score ranks settings: held-out candidate sets against the true accuracy on the same bags.

python benchmarks/label_free.py digits birdsong        (birdsong needs the raw data, MIPL_DATA)
"""

from __future__ import annotations

import argparse
from itertools import product

from measure import print_table
from scipy.stats import pearsonr, spearmanr

import mipl

LENGTHSCALES = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
LANDMARKS = (20, 100, 400)
TRAINING_BAGS = {"digits": 105, "birdsong": 260}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+", choices=TRAINING_BAGS)
    parser.add_argument("--r", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in args.datasets:
        train, held_out = mipl.load(name, r=args.r, seed=args.seed).split(TRAINING_BAGS[name], args.seed)
        rows = []
        for lengthscale, n_landmarks in product(LENGTHSCALES, LANDMARKS):
            model = mipl.BagGP(lengthscale=lengthscale, n_landmarks=n_landmarks, random_state=args.seed)
            model.fit(train)
            score = mipl.label_free_score(model, held_out)
            rows.append([lengthscale, n_landmarks, score, model.score(held_out)])
        rows.sort(key=lambda row: -row[2])
        scores, accuracies = [row[2] for row in rows], [row[3] for row in rows]
        print_table(f"{name}, r = {args.r}", ["length scale", "landmarks", "label-free score", "accuracy"], rows)
        print(
            f"Pearson {pearsonr(scores, accuracies)[0]:.3f}, Spearman {spearmanr(scores, accuracies)[0]:.3f};", end=" "
        )
        print(f"chosen {accuracies[0]:.3f}, best {max(accuracies):.3f}, mean {sum(accuracies) / len(rows):.3f}")


if __name__ == "__main__":
    main()
