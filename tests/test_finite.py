"""Finite instances of any size give finite answers or a clear error, in every method."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from quick_methods import at_scale, quick

import mipl
from mipl.bags import Bags
from mipl.errors import DataError
from mipl.small_problems import small_problem

SCALES = [1e-45, 1e-38, 1e-30, 1e-10, 1e10, 1e19, 1e30, 3.4e38]
PENALISED = ("CLPL", "LSB-CMM")  # take very small features for nothing, and say so


def assert_finite(model: mipl.MIPLClassifier, bags: Bags, candidates: np.ndarray) -> None:
    for found in (model.predict_proba(bags), model.predict_instances(bags), model.resolve(bags, candidates)):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", mipl.methods())
@pytest.mark.filterwarnings("ignore:.*far outside of the training range")
def test_new_bags_of_any_size_get_finite_answers(name):
    bags, candidates, _ = small_problem()
    model = quick(name).fit(bags, candidates)
    for scale in SCALES:
        assert_finite(model, at_scale(bags, scale), candidates)


@pytest.mark.parametrize("scale", [1e-30, 1e19, 3.4e38])
@pytest.mark.parametrize("name", [name for name in mipl.methods() if not name.startswith("MIPLGP")])
def test_a_fit_at_any_scale_is_as_good_as_at_scale_one_or_says_why_not(name, scale):
    bags, candidates, labels = small_problem()
    ordinary = quick(name).fit(at_scale(bags, 1.0), candidates).score(at_scale(bags, 1.0), labels)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = quick(name).fit(at_scale(bags, scale), candidates)
    assert_finite(model, at_scale(bags, scale), candidates)
    small = [w for w in told if "takes for nothing" in str(w.message)]
    assert bool(small) == (name in PENALISED and scale < 1)
    assert small or model.score(at_scale(bags, scale), labels) >= ordinary - 0.1


@pytest.mark.parametrize("name", ["MIPLGP", "MIPLGP-uniform", "MIPLGP-naive"])
def test_miplgp_takes_features_as_they_are_and_refuses_distances_beyond_its_lengthscales(name):
    bags, candidates, _ = small_problem()
    assert_finite(quick(name).fit(at_scale(bags, 1e19), candidates), at_scale(bags, 1e19), candidates)
    for scale in (1e-45, 1e-30, 1e30, 3.4e38):
        with pytest.raises(DataError, match=r"instances are .* apart.*bring the features to a scale near one"):
            quick(name).fit(at_scale(bags, scale), candidates)


@pytest.mark.parametrize("shape", [(20, 20), (8, 8)])
@pytest.mark.parametrize("scale", [1e-30, 1e30, 3.4e38])
def test_images_of_any_size_are_told_apart(shape, scale):
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    stack = 0.05 * rng.standard_normal((24, 3, *shape))
    for bag, label in zip(stack, labels, strict=True):
        place = rng.integers(2, shape[0] - 2)
        bag[0][(slice(None), place) if label else place] += 1
    bags = at_scale(Bags.from_list(list(stack.reshape(24, 3, -1))), scale, shape)
    model = quick("BagGP").fit(bags, np.eye(2, dtype=bool)[labels])
    assert_finite(model, bags, np.ones((24, 2), dtype=bool))
    assert model.score(bags, labels) > 0.9
    assert_finite(quick("BagGP").fit(at_scale(bags, 1.0, shape), np.eye(2, dtype=bool)[labels]), bags, np.ones((24, 2)))


def test_of_instances_far_from_all_others_baggp_says_what_it_says_of_strange_ones():
    bags, candidates, _ = small_problem()
    model = quick("BagGP").fit(bags, candidates)
    strange = Bags.from_list([np.full((2, 4), 1e4), np.full((2, 4), 1e30), np.full((2, 4), -3.4e38)])
    with pytest.warns(UserWarning, match="3 of 3 bags have features far outside"):
        found = model.predict_proba(strange)
    logits = (1 - model._model().stacking.second_share) * model.intercept_[0]
    logits = logits + model._model().stacking.second_share * model.intercept_[1]
    np.testing.assert_allclose(model._answer(strange, model._model())[0].logits.numpy(), logits[None].repeat(6, 0))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("value", [-1e6, 1e8, -1e8, 1e12, -1e19, 3e38])
@pytest.mark.filterwarnings("ignore:.*far from all others")
def test_one_wild_bag_costs_baggp_none_of_the_others(value):
    bags, candidates, labels = small_problem()
    X = bags.instances.copy()
    X[bags.offsets[5] : bags.offsets[6]] = value
    model = quick("BagGP").fit(Bags(X, bags.offsets), candidates)
    others = np.arange(len(bags)) != 5
    assert model.score(bags[others], labels[others]) > 0.9
    assert_finite(model, Bags(X, bags.offsets), candidates)
