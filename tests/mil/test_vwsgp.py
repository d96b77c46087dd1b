"""VWSGP's bound against its evidence by Monte Carlo."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from shifted_bags import shifted_bags

from mipl.mil import VWSGP
from mipl.mil.inducing import residual_variance


def test_the_bound_of_vwsgp_lies_below_the_evidence_of_its_model() -> None:
    bags, y = shifted_bags(1.0, seed=3, n=4)
    model = VWSGP(n_inducing=20).fit(bags, y)
    features = model.front_end_.transform(bags)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((20000, len(bags))) * np.sqrt(bags.sum(residual_variance(features)))
    draws = rng.standard_normal((20000, features.shape[1])) @ bags.sum(features).T + noise
    evidence = np.log(np.mean(np.prod(expit((2 * y - 1) * draws), axis=1)))
    assert model.bounds_[-1] < evidence < model.bounds_[-1] + 3


def test_the_mean_of_instances_keeps_the_size_of_a_bag_out_of_its_logit() -> None:
    bags, y = shifted_bags(1.0, seed=3, n=20)
    doubled = bags.concatenate([bags[:1], bags[:1]])
    twice = type(bags)(doubled.instances, [0, doubled.n_instances])
    for evidence, factor in (("mean", 1.0), ("sum", 2.0)):
        model = VWSGP(n_inducing=20, evidence=evidence).fit(bags, y)
        np.testing.assert_allclose(
            model.decision_function(twice), factor * model.decision_function(bags[:1]), rtol=1e-9
        )
