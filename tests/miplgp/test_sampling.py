"""The three rules of prediction: each against the other where they must agree, and apart where they must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import mipl
from mipl.gp.posterior import CHOLESKY_SIZE
from mipl.miplgp.estimator import MIPLGP


@pytest.fixture(scope="module")
def fitted() -> tuple[MIPLGP, Any]:
    train, test = mipl.load("digits", r=1, seed=0).split(seed=0)
    return MIPLGP(max_iter=10, n_samples=4096).fit(train.bags, train.candidates), test


def instances(model: MIPLGP, bags: mipl.Bags, sampling: str) -> Any:
    return model.set_params(sampling=sampling).predict_instances(bags)


def test_joint_draws_of_few_instances_have_the_marginal_expectations(fitted: tuple[MIPLGP, Any]) -> None:
    """Below the threshold no variance is lost, so only the Monte Carlo error of 4,096 draws is between the rules."""
    model, test = fitted
    few = test.bags[:10]
    assert few.n_instances < CHOLESKY_SIZE
    np.testing.assert_allclose(instances(model, few, "joint"), instances(model, few, "marginal"), atol=0.03)


def test_joint_draws_of_many_instances_lie_between_the_marginal_rule_and_the_mean(fitted: tuple[MIPLGP, Any]) -> None:
    model, test = fitted
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [test.bags.instances + rng.normal(scale=0.3, size=test.bags.instances.shape) for _ in range(4)]
    )
    many = mipl.Bags(rows.astype(np.float32), np.arange(len(rows) + 1))
    assert many.n_instances > CHOLESKY_SIZE
    marginal, joint, mean = (instances(model, many, rule) for rule in ("marginal", "joint", "mean"))
    entropy = [-(p * np.log(p)).sum(1).mean() for p in (mean, joint, marginal)]
    assert entropy[0] < entropy[1] < entropy[2]


def test_the_mean_rule_is_the_softmax_of_the_posterior_mean(fitted: tuple[MIPLGP, Any]) -> None:
    model, test = fitted
    mean, _ = model._posterior().moments(test.bags.instances, 100)
    np.testing.assert_allclose(instances(model, test.bags, "mean"), softmax(mean, axis=1), atol=1e-6)


def test_only_under_the_joint_rule_an_answer_depends_on_the_other_bags(fitted: tuple[MIPLGP, Any]) -> None:
    model, test = fitted
    first = test.bags[:5]
    for sampling, alone in (("marginal", True), ("mean", True), ("joint", False)):
        whole = instances(model, test.bags, sampling)[: first.n_instances]
        assert np.allclose(instances(model, first, sampling), whole, atol=1e-6) == alone


def test_joint_draws_are_repeatable_and_leave_the_marginal_rule_alone(fitted: tuple[MIPLGP, Any]) -> None:
    model, test = fitted
    before = instances(model, test.bags, "marginal")
    first = instances(model, test.bags, "joint")
    np.testing.assert_array_equal(instances(model, test.bags, "joint"), first)
    np.testing.assert_array_equal(instances(model, test.bags, "marginal"), before)
