"""How much of Birdsong's accuracy comes from syllables that training and test bags share.

The paper's way draws bags from the same small pool of syllables; ``groups`` keeps the recordings of training and test
bags apart. Two classifiers on both, over several seeds: the nearest neighbour by true instance labels, which shows what
remembering is worth (a bag takes the class that most of its instances find), and a method that sees candidates only.

Run: MIPL_DATA=... python benchmarks/birdsong_leak.py [method] [seeds]
"""

from __future__ import annotations

import sys

import numpy as np
from measure import print_table
from sklearn.neighbors import KNeighborsClassifier

import mipl
from mipl import MIPLDataset
from mipl.datasets import min_max


def shared_instances(train: MIPLDataset, test: MIPLDataset, positive: bool) -> float:
    """The share of (positive) test instances that a training bag holds as well."""
    known = set(map(bytes, train.bags.instances))
    rows = test.bags.instances[test.instance_labels < 13] if positive else test.bags.instances
    return float(np.mean([bytes(row) in known for row in rows]))


def nearest_neighbour(train: MIPLDataset, test: MIPLDataset) -> float:
    model = KNeighborsClassifier(1, algorithm="brute").fit(train.bags.instances, train.instance_labels)
    found = model.predict(test.bags.instances)
    votes = test.bags.sum(np.eye(14)[found])[:, :13]
    return float(np.mean(votes.argmax(axis=1) == test.labels))


def main() -> None:
    method = sys.argv[1] if len(sys.argv) > 1 else "PL-kNN"
    seeds = range(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    rows = []
    for share, groups in ((0.5, 2), (0.7, 10)):
        for option in (None, groups):
            figures = []
            for seed in seeds:
                raw = mipl.load("birdsong", r=1, seed=seed, groups=option).split(share, seed=seed)
                train, test = min_max(*raw)
                model = mipl.make(method).fit(train.bags, train.candidates)
                figures.append(
                    (
                        100 * shared_instances(train, test, positive=False),
                        100 * shared_instances(train, test, positive=True),
                        nearest_neighbour(train, test),
                        model.score(test.bags, test.labels),
                    )
                )
            name = f"{share:.0%} training, " + ("as in the paper" if option is None else f"groups={option}")
            rows.append((name, *np.mean(figures, axis=0).tolist()))
    print_table(
        f"Birdsong, r=1, mean of {len(seeds)} seeds",
        ("split", "shared %", "shared positives %", "1-NN, true instance labels", method),
        rows,
    )


if __name__ == "__main__":
    main()
