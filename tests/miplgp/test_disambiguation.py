"""Targets, Monte Carlo probabilities and the E-steps, against formulas and quadrature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mipl.bags import Bags
from mipl.candidates import augment_candidates
from mipl.errors import DataError
from mipl.gp.dirichlet import dirichlet_targets
from mipl.gp.montecarlo import class_probabilities, standard_normal_points
from mipl.miplgp.disambiguation import disambiguation, initial_weights


def test_the_log_normal_has_the_mean_and_variance_of_the_gamma() -> None:
    weights = np.array([[0.0, 1 / 3, 0.5, 1.0]])
    y, noise = dirichlet_targets(weights, 1e-4)
    alpha = weights + 1e-4
    np.testing.assert_allclose(np.exp(y + noise / 2), alpha)
    np.testing.assert_allclose(np.expm1(noise) * np.exp(2 * y + noise), alpha)


def test_two_classes_agree_with_numerical_quadrature() -> None:
    """With one class and the negative one, the expectation is a one-dimensional integral."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(scale=3, size=(50, 2)), rng.uniform(0, 4, size=(50, 2))
    found = class_probabilities(mean, variance, standard_normal_points(512, 2, seed=0))
    x, w = np.polynomial.hermite_e.hermegauss(101)
    gap = mean[:, :1] - mean[:, 1:] + np.sqrt(variance.sum(axis=1, keepdims=True)) * x
    expected = (w / w.sum() / (1 + np.exp(-gap))).sum(axis=1)
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_many_classes_agree_with_plain_monte_carlo() -> None:
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=(3, 27)), rng.uniform(0.5, 2, size=(3, 27))
    found = class_probabilities(mean, variance, standard_normal_points(512, 27, seed=0))
    many = class_probabilities(mean, variance, rng.standard_normal((200_000, 27)))
    np.testing.assert_allclose(found, many, atol=5e-3)


def test_probabilities_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(40, 3)), rng.uniform(0, 4, size=(40, 3))
    points = standard_normal_points(64, 3, seed=0)
    whole = class_probabilities(mean, variance, points)
    monkeypatch.setattr("mipl.gp.montecarlo.CHUNK", 7 * points.size)
    np.testing.assert_array_equal(class_probabilities(mean, variance, points), whole)


BAGS = Bags.from_list([np.zeros((2, 1)), np.zeros((1, 1))])
CANDIDATES = augment_candidates(np.array([[True, False], [True, True]]))
PRIOR = np.array([1.0, 5.0, 2.0])
POSTERIOR = np.array([[0.0, 9.0, 0.0], [-800.0, 0.0, 800.0], [1.0, 1.0, 1.0]])


def test_the_start_spreads_one_unit_over_the_augmented_candidates() -> None:
    expected = [[1 / 2, 0, 1 / 2], [1 / 2, 0, 1 / 2], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(initial_weights(BAGS, CANDIDATES), expected)


def test_released_weights_depend_on_the_prior_mean_and_the_candidate_set_only() -> None:
    rule = disambiguation("released")
    weights = rule.step(PRIOR, POSTERIOR, BAGS, CANDIDATES)
    a, b, c = np.exp(PRIOR)
    np.testing.assert_allclose(weights, [[a / (a + c), 0, c / (a + c)]] * 2 + [[x / (a + b + c) for x in (a, b, c)]])
    assert not rule.updates_noise
    assert not rule.predicts_with_last


def test_softmax_weights_follow_the_posterior_of_each_instance() -> None:
    rule = disambiguation("softmax")
    weights = rule.step(PRIOR, POSTERIOR, BAGS, CANDIDATES)
    np.testing.assert_allclose(weights, [[0.5, 0, 0.5], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]])
    assert rule.updates_noise
    assert rule.predicts_with_last


def test_bag_weights_equal_the_enumeration_of_all_instance_labels() -> None:
    rng = np.random.default_rng(0)
    posterior = rng.normal(size=(3, 3))
    probability = np.exp(posterior)
    expected = np.zeros((3, 3))
    for start, stop, allowed in ((0, 2, {0}), (2, 3, {0, 1})):  # the bags and their candidates
        for labels in itertools.product(range(3), repeat=stop - start):
            found = set(labels) - {2}
            if len(found) == 1 and found <= allowed:
                rows = np.arange(start, stop)
                expected[rows, labels] += probability[rows, labels].prod() / probability[start:stop, 2].prod()
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(disambiguation("bag").step(PRIOR, posterior, BAGS, CANDIDATES), expected)


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(DataError, match=r"'bags'.*'uniform'"):
        disambiguation("bags")
