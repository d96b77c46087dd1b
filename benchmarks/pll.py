"""The six partial-label learners: accuracy and time on Lost, cost at 5,000 samples, and growth with n.

MIPL_DATA=... python benchmarks/pll.py [lost] [scale] [solvers]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from measure import measure, print_table
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.preprocessing import MinMaxScaler, minmax_scale

from mipl.pll import CLPL, GMPLL, LSBCMM, PLAGGD, SURE, PLkNN
from mipl.pll.clpl import clpl_objective
from mipl.pll.neighbours import nearest_neighbours, reconstruction_grams, reconstruction_weights
from mipl.pll.simplex import project_simplex

LEARNERS = {learner.name: learner for learner in (PLkNN, CLPL, LSBCMM, SURE, GMPLL, PLAGGD)}
#: Accuracy and seconds of public ports on Lost, mean of five random 80/20 splits.
PUBLISHED = {"PL-kNN": (0.432, 0.06), "CLPL": (0.726, 2.9), "LSB-CMM": (0.504, 46.0), "SURE": (0.775, 371.0)}
Data = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]


def read_lost() -> Data:
    file = loadmat(Path(os.environ["MIPL_DATA"]) / "lost" / "lost.mat")
    candidates, truth = (file[key].toarray().T > 0 for key in ("partial_target", "target"))
    return MinMaxScaler().fit_transform(file["data"]), candidates, truth.argmax(axis=1)


def synthetic(n: int) -> Data:
    """Make n samples with 38 features and 13 classes; every false label is a candidate with probability 0.2."""
    X, y = make_classification(
        n, 38, n_informative=20, n_classes=13, n_clusters_per_class=2, class_sep=2.0, random_state=0
    )
    candidates = np.random.default_rng(0).random((n, 13)) < 0.2
    candidates[np.arange(n), y] = True
    return minmax_scale(X), candidates, y


def splits(n: int, repeats: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    for seed in range(repeats):
        train, test = np.split(np.random.default_rng(seed).permutation(n), [int(0.8 * n)])
        yield train, test


def lost() -> None:
    X, candidates, y = read_lost()
    rows = []
    for name, learner in LEARNERS.items():
        costs, accuracies = [], []
        for train, test in splits(len(X), 5):
            costs.append(measure(lambda: learner().fit(X[train], candidates[train]).predict(X[test])))  # noqa: B023
            accuracies.append(np.mean(costs[-1].result == y[test]))
        accuracy, seconds = PUBLISHED.get(name, ("", ""))
        mean = float(np.mean([c.seconds for c in costs]))
        found = f"{np.mean(accuracies):.3f} ± {np.std(accuracies):.3f}"
        faster = seconds / mean if name in PUBLISHED else ""
        rows.append([name, found, accuracy, mean, seconds, faster, max(c.peak_mib for c in costs)])
    header = ["Lost, 5 splits", "accuracy", "published", "seconds", "published", "times faster", "peak MiB"]
    print_table("Lost: 897 training samples, 108 features, 16 classes; fit and predict", header, rows)


def scale(sizes: tuple[int, ...] = (1250, 2500, 5000)) -> None:
    rows = []
    for name, learner in LEARNERS.items():
        costs = []
        for n in sizes:
            X, candidates, y = synthetic(n)
            costs.append(measure(lambda: np.mean(learner().fit(X, candidates).predict(X) == y)))  # noqa: B023
        growth = [np.log2(later.seconds / earlier.seconds) for earlier, later in pairwise(costs)]
        seconds = [c.seconds for c in costs]
        rows.append([name, *seconds, f"n^{np.mean(growth):.1f}", costs[-1].peak_mib, f"{costs[-1].result:.3f}"])
    header = ["38 features, 13 classes", *(f"s, n={n}" for n in sizes), "growth", "peak MiB", "training accuracy"]
    print_table("Synthetic: fit and predict the training samples", header, rows)


def solvers() -> None:
    """Compare the inner solvers with generic ones, side by side on Lost."""
    X, candidates, _ = read_lost()
    n, q = candidates.shape
    scores = np.random.default_rng(0).normal(0.2, 0.3, size=(n, q))
    index = nearest_neighbours(X, 10)
    grams = reconstruction_grams(X, X, index)
    design = np.column_stack([X, np.ones(n)])

    def plain_clpl() -> None:
        def flat(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = clpl_objective(w.reshape(-1, q), design, candidates, 1.0)
            return value, gradient.ravel()

        options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-2, "ftol": 0.0}
        minimize(flat, np.zeros(design.shape[1] * q), jac=True, method="L-BFGS-B", options=options)

    def simplex_programs(quadratic: NDArray[np.float64], linear: NDArray[np.float64], support: NDArray) -> None:
        total = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}
        for Q, b, s in zip(quadratic, linear, support, strict=True):
            start, bounds = s / s.sum(), [(0, int(inside)) for inside in s]
            minimize(
                lambda p: p @ Q @ p - 2 * b @ p,  # noqa: B023
                start,
                jac=lambda p: 2 * (Q @ p - b),  # noqa: B023
                bounds=bounds,
                constraints=total,
                method="SLSQP",
            )

    pairs = {
        "SURE's row step": (
            lambda: project_simplex(scores, candidates),
            lambda: simplex_programs(np.broadcast_to(np.eye(q), (n, q, q)), scores, candidates),
        ),
        "PL-AGGD's graph step": (
            lambda: reconstruction_weights(grams),
            lambda: simplex_programs(grams, np.zeros((n, 10)), np.ones((n, 10))),
        ),
        "CLPL, curvature coordinates": (lambda: CLPL().fit(X, candidates), plain_clpl),
        "LSB-CMM's expectation step": (
            lambda: expectation_step(candidates, 80),
            lambda: full_expectation_step(candidates, 80),
        ),
    }
    rows = []
    for name, (ours, generic) in pairs.items():
        first, second = measure(ours, 3), measure(generic)
        rows.append(
            [name, first.seconds, first.peak_mib, second.seconds, second.peak_mib, second.seconds / first.seconds]
        )
    header = ["on all of Lost", "ours, s", "MiB", "generic, s", "MiB", "times faster"]
    print_table("Inner solvers against SLSQP row by row, plain L-BFGS, and arrays with all indices", header, rows)


def expectation_step(candidates: NDArray[np.bool_], n_regions: int) -> None:
    concentrations = 1 + np.random.default_rng(0).random((n_regions, candidates.shape[1]))
    LSBCMM()._expect(np.zeros((len(candidates), n_regions)), concentrations, candidates.astype(np.float64))


def full_expectation_step(candidates: NDArray[np.bool_], n_regions: int) -> None:
    """Form all responsibilities (n, K, q)."""
    concentrations = 1 + np.random.default_rng(0).random((n_regions, candidates.shape[1]))
    r = np.exp(np.zeros((len(candidates), n_regions, 1)) + np.log(concentrations)) * candidates[:, None, :]
    r /= r.sum(axis=(1, 2), keepdims=True)
    r.sum(axis=0), r.sum(axis=2)


if __name__ == "__main__":
    parts = {"lost": lost, "scale": scale, "solvers": solvers}
    for part in sys.argv[1:] or parts:
        parts[part]()
