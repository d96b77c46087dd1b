"""Nearest neighbours and reconstruction weights, against distances of all pairs and a generic solver."""

from __future__ import annotations

import numpy as np
import pytest
from simplex_program import solve_row

from mipl.pll.neighbours import nearest_neighbours, neighbour_graph, reconstruction_grams, reconstruction_weights


def test_neighbours_are_the_nearest_other_samples(separated_classes):
    samples, _, _ = separated_classes
    distance = np.linalg.norm(samples[:, None] - samples[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    np.testing.assert_array_equal(nearest_neighbours(samples, 5), distance.argsort(axis=1)[:, :5])


def test_a_duplicate_of_a_sample_is_its_neighbour():
    samples = np.repeat(np.eye(3), 2, axis=0)
    np.testing.assert_array_equal(nearest_neighbours(samples, 1)[:, 0], [1, 0, 3, 2, 5, 4])


def test_the_graph_has_the_weights_of_a_sample_in_its_row(separated_classes):
    samples, _, _ = separated_classes
    index = nearest_neighbours(samples, 3)
    weights = reconstruction_weights(reconstruction_grams(samples, samples, index))
    dense = np.zeros((40, 40))
    np.put_along_axis(dense, index, weights, axis=1)
    np.testing.assert_array_equal(neighbour_graph(index, weights).toarray(), dense)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_reconstruction_weights_agree_with_a_quadratic_program(k):
    rng = np.random.default_rng(2)
    samples, others = rng.normal(size=(25, 12)), rng.normal(size=(40, 12))
    index = np.array([rng.choice(40, k, replace=False) for _ in range(25)])
    grams = reconstruction_grams(samples, others, index)
    expected = [solve_row(lambda w, G=G: w @ G @ w, lambda w, G=G: 2 * G @ w, np.ones(k)) for G in grams]
    np.testing.assert_allclose(reconstruction_weights(grams), expected, atol=1e-5)


def test_reconstruction_error_is_smallest_with_more_neighbours_than_dimensions_and_duplicates():
    rng = np.random.default_rng(3)
    samples, others = rng.normal(size=(25, 3)), np.repeat(rng.normal(size=(10, 3)), 2, axis=0)
    index = np.array([rng.permutation(20)[:12] for _ in range(25)])
    grams = reconstruction_grams(samples, others, index)
    weights = reconstruction_weights(grams)
    expected = [solve_row(lambda w, G=G: w @ G @ w, lambda w, G=G: 2 * G @ w, np.ones(12)) for G in grams]
    errors = [np.einsum("nk,nkl,nl->n", w, grams, w) for w in (weights, np.array(expected))]
    np.testing.assert_allclose(errors[0], errors[1], atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_neighbours_that_coincide_with_the_sample_share_the_weight():
    grams = reconstruction_grams(np.ones((1, 2)), np.ones((4, 2)), np.array([[0, 1, 2, 3]]))
    np.testing.assert_allclose(reconstruction_weights(grams), [[0.25] * 4])
