"""The graph methods: PL-AGGD's blocks and GM-PLL's matching."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.preprocessing import normalize

from mipl.candidates import uniform_weights
from mipl.pll import GMPLL, PLAGGD
from mipl.pll.neighbours import nearest_neighbours, neighbour_graph, reconstruction_grams, reconstruction_weights
from mipl.pll.plaggd import graph_confidences


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    samples = rng.normal(size=(40, 4)) + 2 * np.eye(4)[labels]
    candidates = rng.random((40, 3)) < 0.4
    candidates[np.arange(40), labels] = True
    return samples, candidates, labels


def test_neighbours_are_the_nearest_other_samples(problem):
    samples, _, _ = problem
    distance = np.linalg.norm(samples[:, None] - samples[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    np.testing.assert_array_equal(nearest_neighbours(samples, 5), distance.argsort(axis=1)[:, :5])


def test_a_duplicate_of_a_sample_is_its_neighbour():
    samples = np.repeat(np.eye(3), 2, axis=0)
    np.testing.assert_array_equal(nearest_neighbours(samples, 1)[:, 0], [1, 0, 3, 2, 5, 4])


def test_confidence_step_agrees_with_a_generic_solver(problem):
    samples, candidates, _ = problem
    rng = np.random.default_rng(1)
    n, q, mu = 8, 3, 0.7
    samples, candidates, scores = samples[:n], candidates[:n], rng.normal(0.3, 0.3, size=(n, q))
    index = nearest_neighbours(samples, 3)
    weights = reconstruction_weights(reconstruction_grams(samples, samples, index))
    graph = np.zeros((n, n))
    np.put_along_axis(graph, index, weights, axis=1)
    np.testing.assert_array_equal(neighbour_graph(index, weights).toarray(), graph)

    def objective(flat):
        Y = flat.reshape(n, q)
        return np.sum((Y - graph @ Y) ** 2) + np.sum((Y - scores) ** 2) / mu

    start = uniform_weights(candidates)
    solved = minimize(
        objective,
        start.ravel(),
        bounds=[(0, 1 if inside else 0) for inside in candidates.ravel()],
        constraints=[{"type": "eq", "fun": lambda flat, i=i: flat.reshape(n, q)[i].sum() - 1} for i in range(n)],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    found = graph_confidences(index, weights, candidates, start, scores=scores, mu=mu, tol=1e-9)
    assert objective(found.ravel()) <= solved.fun + 1e-8
    np.testing.assert_allclose(found, solved.x.reshape(n, q), atol=1e-4)


def test_pl_aggd_resolves_separated_classes(problem):
    samples, candidates, labels = problem
    model = PLAGGD().fit(samples, candidates)
    assert (model.confidences_.argmax(axis=1) == labels).mean() > 0.8
    assert (model.confidences_[~candidates] == 0).all()


def matching_problem(model, samples, candidates):
    """The affinity that GM-PLL maximises, from its parts as dense arrays."""
    unit = normalize(samples)
    index = nearest_neighbours(unit, model.k)
    graph = np.zeros((len(samples), len(samples)))
    np.put_along_axis(graph, index, reconstruction_weights(reconstruction_grams(unit, unit, index)), axis=1)
    graph = (graph + graph.T) / 2
    single = model.nu * graph @ uniform_weights(candidates)
    return graph, single


def test_matching_never_loses_affinity(problem):
    samples, candidates, _ = problem
    graph, single = matching_problem(GMPLL(), samples, candidates)

    def affinity(P):
        return np.sum(single * P) + 0.5 * np.sum(P * (graph @ P))

    steps = [GMPLL(max_iter=t, tol=0).fit(samples, candidates).confidences_ for t in range(1, 40)]
    values = [affinity(P) for P in [uniform_weights(candidates), *steps]]
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


def test_each_step_multiplies_the_matching_by_the_gradient(problem):
    samples, candidates, _ = problem
    model = GMPLL(nu=3.0, max_iter=3).fit(samples, candidates)
    graph, single = matching_problem(model, samples, candidates)
    P = uniform_weights(candidates)
    for _ in range(3):
        P = P * (single + graph @ P)
        P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.confidences_, P, atol=1e-12)


def test_matching_ends_at_a_fixed_point_that_no_single_sample_can_improve(problem):
    samples, candidates, _ = problem
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


def test_a_new_sample_next_to_a_training_sample_takes_its_match(problem):
    samples, candidates, _ = problem
    model = GMPLL(k=5).fit(samples, candidates)
    expected = (5 * model.confidences_ + model.confidences_.mean(axis=0)) / 6
    np.testing.assert_allclose(model.predict_proba(samples), expected, atol=1e-6)
