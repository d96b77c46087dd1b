"""PL-AGGD: its confidence step against a generic solver, and what it resolves."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from mipl.candidates import uniform_weights
from mipl.pll import PLAGGD
from mipl.pll.neighbours import nearest_neighbours, reconstruction_grams, reconstruction_weights
from mipl.pll.plaggd import graph_confidences


def test_confidence_step_agrees_with_a_generic_solver(separated_classes):
    samples, candidates, _ = separated_classes
    rng = np.random.default_rng(1)
    n, q, mu = 8, 3, 0.7
    samples, candidates, scores = samples[:n], candidates[:n], rng.normal(0.3, 0.3, size=(n, q))
    index = nearest_neighbours(samples, 3)
    weights = reconstruction_weights(reconstruction_grams(samples, samples, index))
    graph = np.zeros((n, n))
    np.put_along_axis(graph, index, weights, axis=1)

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


def test_pl_aggd_resolves_separated_classes(separated_classes):
    samples, candidates, labels = separated_classes
    model = PLAGGD().fit(samples, candidates)
    assert (model.confidences_.argmax(axis=1) == labels).mean() > 0.8
    assert (model.confidences_[~candidates] == 0).all()
