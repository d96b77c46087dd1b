"""Kernel ridge regression with a bias against dense formulas, and the temperature of its probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from mipl.candidates import uniform_weights
from mipl.errors import ParameterError
from mipl.pll import PLAGGD, SURE
from mipl.pll.kernel_ridge import GaussianRidge

RIDGE = 0.05


def dense_kernel(samples):
    lengthscale = pdist(samples).mean()
    return np.exp(-(squareform(pdist(samples)) ** 2) / (2 * lengthscale**2))


def test_solution_agrees_with_the_centred_dense_formula(random_candidates):
    samples, candidates = random_candidates
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
    assert model.lengthscale == pytest.approx(pdist(samples).mean())


def test_leave_one_out_agrees_with_fits_on_all_other_samples(random_candidates):
    samples, candidates = random_candidates
    targets = uniform_weights(candidates)
    lengthscale = pdist(samples).mean()
    kernel = dense_kernel(samples)
    expected = []
    for i in range(len(samples)):
        rest = np.arange(len(samples)) != i
        coefficients, bias = GaussianRidge(samples[rest], RIDGE, lengthscale).solve(targets[rest])
        expected.append(kernel[i, rest] @ coefficients + bias)
    np.testing.assert_allclose(GaussianRidge(samples, RIDGE).leave_one_out(targets), expected, atol=1e-9)


def test_scores_at_training_samples_are_the_fitted_values(random_candidates):
    samples, candidates = random_candidates
    model = SURE().fit(samples, candidates)
    expected = GaussianRidge(samples, model.beta).fitted(model.confidences_)
    np.testing.assert_allclose(model._scores(samples), expected, atol=1e-7)
    np.testing.assert_array_equal(model.predict(samples), expected.argmax(axis=1))


def test_temperature_maximises_the_likelihood_of_candidate_sets(random_candidates):
    samples, candidates = random_candidates
    model = SURE().fit(samples, candidates)
    scores = GaussianRidge(samples, model.beta).leave_one_out(model.confidences_)

    def likelihood(temperature):
        proba = np.exp(scores / temperature)
        proba /= proba.sum(axis=1, keepdims=True)
        return np.log((proba * candidates).sum(axis=1)).sum()

    grid = np.geomspace(0.01, 1, 400)
    assert likelihood(model.temperature_) >= max(map(likelihood, grid)) - 1e-6


@pytest.mark.parametrize("model", [SURE(beta=1e-300), PLAGGD(gamma=1e-300)])
def test_a_ridge_below_rounding_is_refused_by_its_name(model):
    samples, candidates = np.zeros((6, 2)), np.ones((6, 3), dtype=bool)
    with pytest.raises(ParameterError, match=f"{model._ridge_parameter}=1e-300 is too small"):
        model.fit(samples, candidates)
