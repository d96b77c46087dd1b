"""Kernel ridge regression with a bias against dense formulas, and SURE on top of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from mipl.candidates import uniform_weights
from mipl.pll import SURE
from mipl.pll.kernel_ridge import GaussianRidge
from mipl.pll.simplex import project_simplex

RIDGE = 0.05


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(30, 4))
    candidates = rng.random((30, 5)) < 0.4
    candidates[np.arange(30), rng.integers(0, 5, 30)] = True
    return samples, candidates


def dense_kernel(samples):
    width = pdist(samples).mean()
    return np.exp(-(squareform(pdist(samples)) ** 2) / (2 * width**2))


def test_solution_agrees_with_the_centred_dense_formula(problem):
    samples, candidates = problem
    targets = uniform_weights(candidates)
    kernel, n = dense_kernel(samples), len(samples)
    centring = np.eye(n) - 1 / n
    coefficients = np.linalg.solve(centring @ kernel + RIDGE * np.eye(n), centring @ targets)
    bias = (targets - kernel @ coefficients).mean(axis=0)
    model = GaussianRidge(samples, RIDGE)
    found = model.solve(targets)
    np.testing.assert_allclose(found[0], coefficients, atol=1e-10)
    np.testing.assert_allclose(found[1], bias, atol=1e-10)
    np.testing.assert_allclose(model.fitted(targets), kernel @ coefficients + bias, atol=1e-10)
    assert model.width == pytest.approx(pdist(samples).mean())


def test_leave_one_out_agrees_with_fits_on_all_other_samples(problem):
    samples, candidates = problem
    targets = uniform_weights(candidates)
    width = pdist(samples).mean()
    kernel = dense_kernel(samples)
    expected = []
    for i in range(len(samples)):
        rest = np.arange(len(samples)) != i
        coefficients, bias = GaussianRidge(samples[rest], RIDGE, width).solve(targets[rest])
        expected.append(kernel[i, rest] @ coefficients + bias)
    np.testing.assert_allclose(GaussianRidge(samples, RIDGE).leave_one_out(targets), expected, atol=1e-9)


def test_sure_row_step_is_a_projection(problem):
    """The published row problem, with its constraints p_l <= p_j, by a generic solver."""
    _, candidates = problem
    rng = np.random.default_rng(1)
    lam = 0.3
    for scores, support in zip(rng.normal(0.3, 0.4, size=(30, 5)), candidates, strict=True):
        j = np.where(support, scores, -np.inf).argmax()
        solved = minimize(
            lambda p, f=scores, j=j: np.sum((p - f) ** 2) - lam * p[j],
            support / support.sum(),
            bounds=[(0, 1 if inside else 0) for inside in support],
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "ineq", "fun": lambda p, j=j: p[j] - np.delete(p, j)},
            ],
            options={"ftol": 1e-14},
        )
        projected = project_simplex((scores + lam / 2 * (np.arange(5) == j))[None], support[None])[0]
        np.testing.assert_allclose(projected, solved.x, atol=1e-5)


def test_sure_never_raises_its_objective(problem):
    samples, candidates = problem
    kernel = dense_kernel(samples)

    def objective(steps):
        model = SURE(max_iter=steps, tol=0).fit(samples, candidates)
        P, A = model.confidences_, model.dual_coef_
        residual = P - kernel @ A - model.intercept_
        return np.sum(residual**2) - model.lam * P.max(axis=1).sum() + model.beta * np.trace(A.T @ kernel @ A)

    values = [objective(steps) for steps in range(1, 12)]
    assert (np.diff(values) <= 1e-10).all()
    assert values[-1] < values[0] - 0.1


def test_scores_at_training_samples_are_the_fitted_values(problem):
    samples, candidates = problem
    model = SURE().fit(samples, candidates)
    expected = GaussianRidge(samples, model.beta).fitted(model.confidences_)
    np.testing.assert_allclose(model._scores(samples), expected, atol=1e-7)
    np.testing.assert_array_equal(model.predict(samples), expected.argmax(axis=1))


def test_temperature_maximises_the_likelihood_of_candidate_sets(problem):
    samples, candidates = problem
    model = SURE().fit(samples, candidates)
    scores = GaussianRidge(samples, model.beta).leave_one_out(model.confidences_)

    def likelihood(temperature):
        proba = np.exp(scores / temperature)
        proba /= proba.sum(axis=1, keepdims=True)
        return np.log((proba * candidates).sum(axis=1)).sum()

    grid = np.geomspace(0.01, 1, 400)
    assert likelihood(model.temperature_) >= max(map(likelihood, grid)) - 1e-6
