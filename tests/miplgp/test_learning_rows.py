"""The instances to learn from: as many as asked for, and as close to each other as all of them are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree

from mipl.miplgp.learning_rows import learning_rows

X = np.random.default_rng(0).normal(size=(3000, 3))


@pytest.mark.parametrize("n_rows", [1, 250, 600])
def test_there_are_as_many_rows_as_asked_for_and_less_than_a_neighbourhood_more(n_rows: int) -> None:
    rows = learning_rows(X, 0, n_rows, neighbourhood=200)
    assert n_rows <= len(rows) < n_rows + 200
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, learning_rows(X, 0, n_rows, neighbourhood=200))
    assert set(rows) != set(learning_rows(X, 1, n_rows, neighbourhood=200))


def test_few_instances_are_all_taken() -> None:
    np.testing.assert_array_equal(learning_rows(X, 0, 3000), np.arange(3000))


def test_neighbours_lie_as_close_as_among_all_instances() -> None:
    def to_nearest(rows: np.ndarray) -> float:
        return float(np.median(KDTree(X[rows]).query(X[rows], k=2)[0][:, 1]))

    rows = learning_rows(X, 0, 600, neighbourhood=200)
    anywhere = np.random.default_rng(1).choice(len(X), len(rows), replace=False)
    everything = to_nearest(np.arange(len(X)))
    assert abs(np.log(to_nearest(rows) / everything)) < 0.2
    assert to_nearest(anywhere) > 1.5 * everything
