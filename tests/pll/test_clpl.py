"""CLPL's convex objective: gradient, optimum, and the support vector machine it becomes with one candidate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.svm import LinearSVC

from mipl.pll import CLPL
from mipl.pll.clpl import clpl_objective


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(40, 3))
    candidates = rng.random((40, 4)) < 0.4
    candidates[np.arange(40), samples[:, :2].argmax(axis=1)] = True
    return samples, candidates


def objective_in_words(samples, candidates, coef, intercept, C, sample_weight=None):
    """The published formula, sample by sample, each as often as its weight says."""
    total = 0.5 * np.sum(coef**2)
    sample_weight = np.ones(len(samples)) if sample_weight is None else sample_weight
    for x, row, weight in zip(samples, candidates, sample_weight, strict=True):
        g = coef @ x + intercept
        total += weight * C * max(0, 1 - g[row].mean()) ** 2
        total += weight * C * sum(max(0, 1 + g[c]) ** 2 for c in np.flatnonzero(~row))
    return total


def test_value_is_the_published_formula_and_the_gradient_its_derivative(problem):
    samples, candidates = problem
    design = np.column_stack([samples, np.ones(len(samples))])
    weights = np.random.default_rng(1).normal(size=(4, 4))
    count = np.random.default_rng(2).uniform(0.2, 3, len(samples))
    value, gradient = clpl_objective(weights, design, candidates, C=0.7, sample_weight=count)
    assert value == pytest.approx(objective_in_words(samples, candidates, weights[:-1].T, weights[-1], 0.7, count))
    numeric = approx_fprime(
        weights.ravel(),
        lambda w: clpl_objective(w.reshape(4, 4), design, candidates, C=0.7, sample_weight=count)[0],
        1e-6,
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_optimum_agrees_with_a_generic_solver_whatever_the_scale_of_a_feature(problem, scale):
    samples, candidates = problem
    model = CLPL(tol=1e-9).fit(samples * [scale, 1, 1], candidates)
    found = objective_in_words(samples * [scale, 1, 1], candidates, model.coef_, model.intercept_, 1.0)
    # The generic solver works on the unscaled samples, with the penalty rescaled instead.
    shrink = np.array([1 / scale, 1, 1])
    design = np.column_stack([samples, np.ones(len(samples))])

    def rescaled(flat):
        value, _ = clpl_objective(flat.reshape(4, 4), design, candidates, C=1.0, sample_weight=np.ones(len(samples)))
        w = flat.reshape(4, 4)[:-1]
        return value - 0.5 * np.sum(w**2) + 0.5 * np.sum((w * shrink[:, None]) ** 2)

    best = minimize(rescaled, np.zeros(16), method="BFGS", options={"gtol": 1e-7}).fun
    assert found == pytest.approx(best, rel=1e-6)


def test_with_one_candidate_it_is_a_one_versus_rest_support_vector_machine(problem):
    samples, _ = problem
    labels = samples.argmax(axis=1)
    model = CLPL(tol=1e-8).fit(samples, labels)
    # LinearSVC penalises its bias; a large scale of the constant feature makes that penalty vanish.
    machine = LinearSVC(C=1.0, intercept_scaling=1e3, tol=1e-10, max_iter=200_000).fit(samples, labels)
    np.testing.assert_allclose(model.coef_, machine.coef_, atol=2e-3)
    np.testing.assert_allclose(model.intercept_, machine.intercept_, atol=2e-3)
    np.testing.assert_array_equal(model.predict(samples), machine.predict(samples))


def test_more_features_than_samples_give_the_same_optimum():
    rng = np.random.default_rng(3)
    samples, candidates = rng.normal(size=(12, 40)), np.eye(3, dtype=bool)[np.arange(12) % 3]
    candidates[:6, 0] = True
    model = CLPL(tol=1e-9).fit(samples, candidates)
    design = np.column_stack([samples, np.ones(12)])
    found = np.vstack([model.coef_.T, model.intercept_])
    gradient = clpl_objective(found, design, candidates, C=1.0, sample_weight=np.ones(12))[1]
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    assert np.linalg.norm(model.coef_) > 0.1
