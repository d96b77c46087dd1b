"""VGPMIL one-vs-rest on MNIST-MIPL: what a fit costs, how the cost grows, and what sharing and threads save.

Run with the raw data at hand: ``MIPL_DATA=... python benchmarks/mil.py``.
"""

from __future__ import annotations

from measure import measure, print_table

import mipl
from mipl.dataset import MIPLDataset
from mipl.mil import VGPMIL


def one_vs_rest(train: MIPLDataset, n_inducing: int, n_jobs: int = 2, method: str = "VGPMIL") -> mipl.MIPLClassifier:
    model = mipl.make(method, n_inducing=n_inducing, n_jobs=n_jobs)
    return model.fit(train.bags, train.candidates)


def separately(train: MIPLDataset, n_inducing: int) -> list[VGPMIL]:
    """The same five problems, each with inducing points and kernel features of its own, one after the other."""
    columns = range(train.candidates.shape[1])
    return [VGPMIL(n_inducing=n_inducing).fit(train.bags, train.candidates[:, c]) for c in columns]


def main() -> None:
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
        [(way, cost.seconds, cost.seconds / full.seconds, cost.peak_mib) for way, cost in ways],
    )
    rows = []
    for m in (62, 125, 250):
        cost = full if m == 250 else measure(lambda m=m: one_vs_rest(train[:m], 200))
        rows.append((f"n = {train.bags[:m].n_instances}, M = 200", cost.seconds, cost.peak_mib))
    for n_inducing in (50, 100, 400):
        cost = measure(lambda k=n_inducing: one_vs_rest(train, k))
        rows.append((f"n = {train.bags.n_instances}, M = {n_inducing}", cost.seconds, cost.peak_mib))
    print_table("Growth", ["size", "seconds", "peak MiB"], rows)
    rows = []
    for method in ("VWSGP", "VGPMIL", "LM-VGPMIL"):
        cost = measure(lambda name=method: one_vs_rest(train, 200, method=name))
        rows.append((method, cost.seconds, cost.peak_mib, cost.result.score(test.bags, test.labels)))
    print_table("The methods, M = 200, candidate_policy='any'", ["method", "seconds", "peak MiB", "accuracy"], rows)


if __name__ == "__main__":
    main()
