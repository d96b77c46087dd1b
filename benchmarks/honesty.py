"""Whether BagGP's confidence is honest where the instances say little or nothing: confidence beside accuracy.

    python benchmarks/honesty.py --seeds 40 41 42 43 44

One instance in each bag of eight is shifted towards its class by `shift` standard deviations, the others are noise in
ten dimensions; 0 means that the features hold no information. Per problem: mean confidence and accuracy of 300 new bags
and of the resolved training bags, and the cross-fitted label-free score in standard errors above chance.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from measure import print_table

import mipl

#: Training bags, classes, false candidates per bag, shift.
PROBLEMS = (
    (90, 3, 1, 0.0),
    (300, 3, 1, 0.0),
    (90, 10, 1, 0.0),
    (300, 10, 1, 0.0),
    (90, 10, 2, 0.0),
    (300, 10, 2, 0.0),
    (300, 3, 1, 1.6),
    (300, 3, 1, 2.4),
    (300, 3, 1, 3.2),
)
SIZE, FEATURES, NEW_BAGS = 8, 10, 300


def draw(m: int, q: int, r: int, shift: float, seed: int) -> mipl.MIPLDataset:
    rng = np.random.default_rng(seed)
    labels = rng.integers(q, size=m)
    candidates = np.zeros((m, q), dtype=bool)
    candidates[np.arange(m), labels] = True
    for row, label in zip(candidates, labels, strict=True):
        row[rng.choice(np.delete(np.arange(q), label), r, replace=False)] = True
    directions = np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0][:q]
    instances = rng.standard_normal((m, SIZE, FEATURES)).astype(np.float32)
    instances[:, 0] += shift * directions[labels]
    return mipl.MIPLDataset(instances, candidates, labels, classes=[f"class {c}" for c in range(q)])


def measure(m: int, q: int, r: int, shift: float, seed: int) -> list[float]:
    ds = draw(m + NEW_BAGS, q, r, shift, seed)
    train, new = ds[:m], ds[m:]
    start = time.process_time()
    model = mipl.BagGP(random_state=seed).fit(train)
    seconds = time.process_time() - start
    figures = []
    for posterior, labels in ((model.predict_proba(new), new.labels), (model.posterior_, train.labels)):
        figures += [posterior.max(axis=1).mean(), np.mean(posterior.argmax(axis=1) == labels)]
    return [*figures, model.label_free_score_ / model.label_free_error_, seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[40, 41, 42, 43, 44])
    args = parser.parse_args()
    rows = []
    for problem in PROBLEMS:
        new, right, train, resolved, score, seconds = np.mean([measure(*problem, seed) for seed in args.seeds], axis=0)
        figures = (new, right, new - right, train, resolved, train - resolved, score, seconds)
        rows.append([*problem[:3], f"{problem[3]:.1f}", *(f"{value:+.3f}" for value in figures)])
    title = f"means over seeds {', '.join(map(str, args.seeds))}"
    header = [
        "bags",
        "q",
        "r",
        "shift",
        "new: sure",
        "right",
        "gap",
        "resolved: sure",
        "right",
        "gap",
        "score/se",
        "CPU s",
    ]
    print_table(title, header, rows)


if __name__ == "__main__":
    main()
