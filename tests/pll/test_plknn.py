"""PL-kNN with sample weights: so many neighbours at one place."""

from __future__ import annotations

import numpy as np

from mipl.pll import PLkNN

SAMPLES = np.array([[0.0], [1.0], [3.0], [9.0]])
CANDIDATES = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)


def votes(*neighbours: tuple[float, float, list[int]]) -> np.ndarray:
    """Shares of the votes of neighbours (part that counts, distance, labels), by the published formula."""
    total = sum(part * distance for part, distance, _ in neighbours)
    found = np.zeros(3)
    for part, distance, labels in neighbours:
        found[labels] += part * max(0, 1 - distance / total)
    return found / found.sum()


def test_neighbours_are_taken_until_their_weights_sum_to_k():
    model = PLkNN(n_neighbors=3).fit(SAMPLES, CANDIDATES, sample_weight=[2, 0.5, 1.5, 1])
    # From 0.5 outwards: all of the first two at distance 0.5, and a third of the next.
    expected = votes((2, 0.5, [0]), (0.5, 0.5, [1]), (0.5, 2.5, [1, 2]))
    np.testing.assert_allclose(model.predict_proba([[0.5]])[0], expected, atol=1e-8)


def test_small_weights_reach_for_more_neighbours_than_k():
    model = PLkNN(n_neighbors=1).fit(SAMPLES, CANDIDATES, sample_weight=[0.25, 0.25, 0.5, 3])
    expected = votes((0.25, 1.0, [0]), (0.25, 2.0, [1]), (0.5, 4.0, [1, 2]))
    np.testing.assert_allclose(model.predict_proba([[-1.0]])[0], expected, atol=1e-8)


def test_where_all_weigh_less_than_k_all_vote():
    model = PLkNN(n_neighbors=9).fit(SAMPLES, CANDIDATES, sample_weight=[0.5, 1, 2, 0])
    expected = votes((0.5, 1.0, [0]), (1, 2.0, [1]), (2, 4.0, [1, 2]))
    np.testing.assert_allclose(model.predict_proba([[-1.0]])[0], expected, atol=1e-8)
