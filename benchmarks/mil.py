"""The multi-instance methods: what a fit costs, how the cost grows, what sharing saves, and how good the answers are.

``python benchmarks/mil.py cost`` fits MNIST-MIPL and needs its raw data; ``python benchmarks/mil.py quality`` uses the
digits that come with scikit-learn.
"""

from __future__ import annotations

import sys

import numpy as np
from measure import measure, print_table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import mipl
from mipl.dataset import MIPLDataset
from mipl.mil import LMVGPMIL, VGPMIL, VWSGP


def one_vs_rest(train: MIPLDataset, n_inducing: int, n_jobs: int = 2, method: str = "VGPMIL") -> mipl.MIPLClassifier:
    model = mipl.make(method, n_inducing=n_inducing, n_jobs=n_jobs)
    return model.fit(train.bags, train.candidates)


def separately(train: MIPLDataset, n_inducing: int) -> list[VGPMIL]:
    """The same five problems, each with inducing points and kernel features of its own, one after the other."""
    columns = range(train.candidates.shape[1])
    return [VGPMIL(n_inducing=n_inducing).fit(train.bags, train.candidates[:, c]) for c in columns]


def cost() -> None:
    train, test = mipl.load("mnist", r=1, seed=0).split(train_size=0.5, seed=0)
    full = measure(lambda: one_vs_rest(train, 200))
    ways = [
        ("shared, 2 jobs", full),
        ("shared, 1 job", measure(lambda: one_vs_rest(train, 200, n_jobs=1))),
        ("not shared", measure(lambda: separately(train, 200))),
    ]
    print_table(
        f"One fit: {train.bags}, 5 classes, M = 200",
        ["way", "seconds", "times the first", "peak MiB"],
        [(way, run.seconds, run.seconds / full.seconds, run.peak_mib) for way, run in ways],
    )
    rows = []
    for m in (62, 125, 250):
        run = full if m == 250 else measure(lambda m=m: one_vs_rest(train[:m], 200))
        rows.append((f"n = {train.bags[:m].n_instances}, M = 200", run.seconds, run.peak_mib))
    for n_inducing in (50, 100):
        run = measure(lambda k=n_inducing: one_vs_rest(train, k))
        rows.append((f"n = {train.bags.n_instances}, M = {n_inducing}", run.seconds, run.peak_mib))
    print_table("Growth", ["size", "seconds", "peak MiB"], rows)
    rows = []
    for method in ("VWSGP", "VGPMIL", "LM-VGPMIL"):
        run = full if method == "VGPMIL" else measure(lambda name=method: one_vs_rest(train, 200, method=name))
        rows.append((method, run.seconds, run.peak_mib, run.result.score(test.bags, test.labels)))
    print_table("The methods, M = 200, candidate_policy='any'", ["method", "seconds", "peak MiB", "accuracy"], rows)


def quality() -> None:
    data = mipl.load("digits", r=0, seed=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    rows = []
    for learner in (VWSGP, VGPMIL, LMVGPMIL):
        aucs = []
        for c in range(5):
            y = (data.labels == c).astype(int)
            odds = cross_val_predict(learner(n_inducing=100), data.bags, y, cv=folds, method="decision_function")
            aucs.append(float(roc_auc_score(y, odds)))
        rows.append((learner.name, *aucs))
    print_table("Bag AUC, digit against the rest, 5 folds of 150 bags", ["learner", *data.classes], rows)
    rows = []
    for method in ("VWSGP", "VGPMIL", "LM-VGPMIL"):
        for policy in ("any", "duplicate"):
            scores = [_accuracy(method, r, n_inducing=100, candidate_policy=policy) for r in (0, 1, 2)]
            rows.append((method, policy, *scores))
    rows.append(("MIVAE", "any", *(_accuracy("MIVAE", r, splits=1) for r in (0, 1, 2))))
    print_table(
        "Accuracy on digits, 75 training bags, mean of 3 splits (MIVAE: one)",
        ["method", "candidate_policy", "r = 0", "r = 1", "r = 2"],
        rows,
    )


def _accuracy(method: str, r: int, splits: int = 3, **params: object) -> float:
    scores = []
    for seed in range(splits):
        train, test = mipl.load("digits", r=r, seed=seed).split(train_size=0.5, seed=seed)
        model = mipl.make(method, **params).fit(train.bags, train.candidates)
        scores.append(model.score(test.bags, test.labels))
    return float(np.mean(scores))


if __name__ == "__main__":
    {"cost": cost, "quality": quality}[sys.argv[1]]()
