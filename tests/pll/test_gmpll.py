"""GM-PLL's matching against the affinity that it maximises, written with dense arrays."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import normalize

from mipl.candidates import uniform_weights
from mipl.pll import GMPLL
from mipl.pll.neighbours import nearest_neighbours, reconstruction_grams, reconstruction_weights


def matching_problem(model, samples, candidates):
    """The affinity that GM-PLL maximises, from its parts as dense arrays."""
    unit = normalize(samples)
    index = nearest_neighbours(unit, model.n_neighbors)
    graph = np.zeros((len(samples), len(samples)))
    np.put_along_axis(graph, index, reconstruction_weights(reconstruction_grams(unit, unit, index)), axis=1)
    graph = (graph + graph.T) / 2
    single = model.unary_weight * graph @ uniform_weights(candidates)
    return graph, single


def test_matching_never_loses_affinity(separated_classes):
    samples, candidates, _ = separated_classes
    graph, single = matching_problem(GMPLL(), samples, candidates)

    def affinity(P):
        return np.sum(single * P) + 0.5 * np.sum(P * (graph @ P))

    steps = [GMPLL(max_iter=t, tol=0).fit(samples, candidates).confidences_ for t in range(1, 40)]
    values = [affinity(P) for P in [uniform_weights(candidates), *steps]]
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


def test_each_step_multiplies_the_matching_by_the_gradient(separated_classes):
    samples, candidates, _ = separated_classes
    model = GMPLL(unary_weight=3.0, max_iter=3).fit(samples, candidates)
    graph, single = matching_problem(model, samples, candidates)
    P = uniform_weights(candidates)
    for _ in range(3):
        P = P * (single + graph @ P)
        P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.confidences_, P, atol=1e-12)


def test_matching_ends_at_a_fixed_point_that_no_single_sample_can_improve(separated_classes):
    samples, candidates, _ = separated_classes
    model = GMPLL(max_iter=20_000, tol=1e-14).fit(samples, candidates)
    P = model.confidences_
    graph, single = matching_problem(model, samples, candidates)
    gradient = single + graph @ P
    updated = P * gradient / np.sum(P * gradient, axis=1, keepdims=True)
    np.testing.assert_allclose(updated, P, atol=1e-10)
    # First-order optimality on each candidate simplex: held matches have the largest gradient in their row.
    best = np.where(candidates, gradient, -np.inf).max(axis=1)
    held = np.sum(P * gradient, axis=1)
    np.testing.assert_allclose(held, best, atol=1e-6)


def test_a_new_sample_next_to_a_training_sample_takes_its_match(separated_classes):
    samples, candidates, _ = separated_classes
    model = GMPLL(n_neighbors=5).fit(samples, candidates)
    expected = (5 * model.confidences_ + model.confidences_.mean(axis=0)) / 6
    np.testing.assert_allclose(model.predict_proba(samples), expected, atol=1e-6)
