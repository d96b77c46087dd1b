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


def test_a_weight_is_so_many_copies_in_solution_fit_and_leave_one_out(random_candidates):
    samples, candidates = random_candidates
    targets = uniform_weights(candidates)
    weight = 1 + np.arange(len(samples)) % 3
    copies = np.repeat(np.arange(len(samples)), weight)
    first = np.searchsorted(copies, np.arange(len(samples)))
    weighted = GaussianRidge(samples, RIDGE, sample_weight=weight.astype(float))
    copied = GaussianRidge(samples[copies], RIDGE)
    assert weighted.lengthscale == pytest.approx(copied.lengthscale)
    np.testing.assert_allclose(weighted.solve(targets)[1], copied.solve(targets[copies])[1], atol=1e-6)
    np.testing.assert_allclose(weighted.fitted(targets), copied.fitted(targets[copies])[first], atol=1e-6)
    # What is left out is one copy, as in a regression on the copies.
    left_out = copied.leave_one_out(targets[copies])[first]
    np.testing.assert_allclose(weighted.leave_one_out(targets), left_out, atol=1e-6)


def test_a_sample_of_weight_below_one_is_left_out_as_a_whole(random_candidates):
    samples, candidates = random_candidates
    targets = uniform_weights(candidates)
    lengthscale = pdist(samples).mean()
    kernel, weight = dense_kernel(samples), np.random.default_rng(1).uniform(0.1, 1.0, len(samples))
    found = GaussianRidge(samples, RIDGE, lengthscale, weight).leave_one_out(targets)
    for i in (0, 7, 29):
        rest = np.arange(len(samples)) != i
        coefficients, bias = GaussianRidge(samples[rest], RIDGE, lengthscale, weight[rest]).solve(targets[rest])
        np.testing.assert_allclose(found[i], kernel[i, rest] @ coefficients + bias, atol=1e-9)


def test_the_lengthscale_of_small_weights_is_the_mean_over_pairs_of_different_samples(random_candidates):
    samples, _ = random_candidates
    weight = np.random.default_rng(1).uniform(0.0, 0.1, len(samples))
    pairs = np.triu(np.outer(weight, weight), 1)
    expected = (pairs * squareform(pdist(samples))).sum() / pairs.sum()
    assert GaussianRidge(samples, RIDGE, sample_weight=weight).lengthscale == pytest.approx(expected)


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
