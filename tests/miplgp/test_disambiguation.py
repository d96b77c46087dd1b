"""The E-steps against formulas and the enumeration of all labels."""

from __future__ import annotations

import itertools

import numpy as np

from mipl.bags import Bags
from mipl.candidates import augment_candidates
from mipl.miplgp.disambiguation import DISAMBIGUATIONS, initial_weights

BAGS = Bags.from_list([np.zeros((2, 1)), np.zeros((1, 1))])
CANDIDATES = augment_candidates(np.array([[True, False], [True, True]]))
PRIOR = np.array([1.0, 5.0, 2.0])
POSTERIOR = np.array([[0.0, 9.0, 0.0], [-800.0, 0.0, 800.0], [1.0, 1.0, 1.0]])


def test_the_start_spreads_one_unit_over_the_augmented_candidates() -> None:
    expected = [[1 / 2, 0, 1 / 2], [1 / 2, 0, 1 / 2], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(initial_weights(BAGS, CANDIDATES), expected)


def test_released_weights_depend_on_the_prior_mean_and_the_candidate_set_only() -> None:
    rule = DISAMBIGUATIONS["released"]
    weights = rule.step(PRIOR, POSTERIOR, BAGS, CANDIDATES)
    a, b, c = np.exp(PRIOR)
    np.testing.assert_allclose(weights, [[a / (a + c), 0, c / (a + c)]] * 2 + [[x / (a + b + c) for x in (a, b, c)]])
    assert not rule.updates_noise
    assert not rule.predicts_with_last


def test_softmax_weights_follow_the_posterior_of_each_instance() -> None:
    rule = DISAMBIGUATIONS["softmax"]
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
    weights = DISAMBIGUATIONS["bag"].step(PRIOR, posterior, BAGS, CANDIDATES)
    np.testing.assert_allclose(weights, expected, atol=1e-15)  # what is left of 1 is rounded
