"""Model files of older formats are read with the names of today, and answer as they did."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl.bags import Bags
from mipl.persistence_migrations import migrate

FILES = Path(__file__).parent / "data" / "models-format-1"


@pytest.mark.parametrize("name", ["BagGP", "MIPLGP", "MIPLGP-uniform", "PL-kNN", "SURE", "VGPMIL"])
def test_a_model_of_format_1_answers_as_when_it_was_saved(name, tmp_path):
    model = mipl.load_model(FILES / f"{name}.mipl")
    again = mipl.load_model(model.save(tmp_path / "again.mipl"))
    with np.load(FILES / "expected.npz") as expected:
        bags = Bags(expected["instances"], expected["offsets"])
        for one in (model, again):
            assert one.classes_.tolist() == ["cat", "ant", "bee"]
            for method in ("predict_proba", "predict_instances"):
                np.testing.assert_allclose(getattr(one, method)(bags), expected[f"{name} {method}"], atol=1e-5)


@pytest.mark.parametrize("name", ["BagGP", "MIPLGP", "MIPLGP-uniform", "PL-kNN", "SURE", "VGPMIL"])
def test_a_model_of_format_1_has_the_parameters_of_today(name):
    model = mipl.load_model(FILES / f"{name}.mipl")
    assert vars(model).keys() >= set(model._get_param_names())
    learner = getattr(model, "learner", model)
    assert vars(learner).keys() >= set(learner._get_param_names())
    assert repr(model)


def estimator(path: str, **state: object) -> dict:
    return {"$": "estimator", "class": path, "state": state}


MIPLGP_ADDED = {"sampling": "marginal", "engine": "exact", "n_landmarks": 500, "subset_size": 6000}

BAGGP_ADDED = {"cross_fit": 0, "memory_budget": None, "candidate_noise": 0.0, "verbose": False}
BAGGP_FITTED = dict.fromkeys(
    (
        "background_",
        "vote_strength_",
        "vote_reliability_",
        "vote_correlation_",
        "label_free_score_",
        "label_free_error_",
        "bag_digests_",
        "outside_",
    )
) | {"candidate_noise_": 0.0}
TREES = {
    "a class that moved": (
        estimator("mipl.baggp:BagGP", rank=5, weights_={"$": "array", "name": "0"}, strange_=0.1),
        estimator(
            "mipl.baggp.estimator:BagGP",
            rank=5,
            stacking_weights_={"$": "array", "name": "0"},
            outlier_rate_=0.1,
            **BAGGP_ADDED,
            **BAGGP_FITTED,
        ),
    ),
    "renamed parameters and a seed that was not kept": (
        estimator("mipl.miplgp:MIPLGP", length_scale=1.0, n_iter=2, lr=0.1, random_state=4, length_scale_=2.0),
        estimator(
            "mipl.miplgp.estimator:MIPLGP",
            lengthscale=1.0,
            max_iter=2,
            learning_rate=0.1,
            random_state=4,
            lengthscale_=2.0,
            seed_=4,
            **MIPLGP_ADDED,
            engine_="exact",
            prior_root_=None,
            landmarks_=None,
        ),
    ),
    "a variant that was a class": (
        estimator("mipl.miplgp:MIPLGPUniform", disambiguation="uniform"),
        estimator("mipl.miplgp.estimator:MIPLGP", disambiguation="uniform", **MIPLGP_ADDED),
    ),
    "an embedded learner": (
        estimator(
            "mipl.pll.plknn:PLkNNBags",
            embed="maxmin",
            k=3,
            random_state=1,
            classes_=[0, 1],
            learner_=estimator("mipl.pll.plknn:PLkNN", k=3, random_state=1, samples_=0),
        ),
        estimator(
            "mipl.pll.embedding:EmbeddedPLL",
            learner=estimator("mipl.pll.plknn:PLkNN", n_neighbors=3, random_state=1),
            embed="maxmin",
            classes_=[0, 1],
            learner_=estimator("mipl.pll.plknn:PLkNN", n_neighbors=3, random_state=1, samples_=0, sample_weight_=None),
        ),
    ),
    "one learner per class": (
        estimator(
            "mipl.mil.vgpmil:VGPMILBags",
            candidate_policy="any",
            n_jobs=None,
            n_inducing=5,
            learners_=[estimator("mipl.mil.vgpmil:VGPMIL", n_inducing=5, mean_=0)],
        ),
        estimator(
            "mipl.mil.ovr:OneVsRest",
            learner=estimator("mipl.mil.vgpmil:VGPMIL", n_inducing=5, verbose=False),
            candidate_policy="any",
            n_jobs=None,
            learners_=[estimator("mipl.mil.vgpmil:VGPMIL", n_inducing=5, mean_=0, verbose=False)],
        ),
    ),
    "an estimator deep inside": (
        estimator(
            "own:Method",
            parts={"$": "tuple", "items": [{"$": "dict", "items": {"a": [estimator("mipl.baggp:BagGP")]}}]},
        ),
        estimator(
            "own:Method",
            parts={
                "$": "tuple",
                "items": [
                    {
                        "$": "dict",
                        "items": {
                            "a": [
                                estimator(
                                    "mipl.baggp.estimator:BagGP",
                                    cross_fit=0,
                                    memory_budget=None,
                                    candidate_noise=0.0,
                                    verbose=False,
                                )
                            ]
                        },
                    }
                ],
            },
        ),
    ),
    "a user's dictionary that looks like an estimator": (
        {"$": "dict", "items": {"$": "estimator", "class": "mipl.baggp:BagGP", "state": "fine"}},
        {"$": "dict", "items": {"$": "estimator", "class": "mipl.baggp:BagGP", "state": "fine"}},
    ),
    "another's class of the same parameters": (
        estimator("own:Method", k=3, width_=1.0, n_iter=2),
        estimator("own:Method", k=3, width_=1.0, n_iter=2),
    ),
}


@pytest.mark.parametrize(("old", "new"), TREES.values(), ids=TREES)
def test_a_tree_of_format_1_is_rewritten(old, new):
    before = copy.deepcopy(old)
    assert migrate(old, 1) == new
    assert old == before


@pytest.mark.parametrize("tree", [new for _, new in TREES.values()])
def test_a_whole_tree_of_format_2_is_left_as_it_is(tree):
    assert migrate(tree, 2) == tree


def test_what_a_class_was_given_later_is_filled_in_and_nothing_else_changes():
    old = {"$": "estimator", "class": "mipl.baggp.estimator:BagGP", "state": {"cross_fit": 4, "candidate_noise": 0.1}}
    state = migrate(old, 2)["state"]
    assert state == {"cross_fit": 4, "candidate_noise": 0.1, "memory_budget": None, "verbose": False}
    assert migrate({"$": "dict", "items": {"state": old}}, 2)["items"]["state"]["state"] == state


@pytest.mark.parametrize("tree", [new for _, new in TREES.values()])
def test_a_second_migration_changes_nothing(tree):
    assert migrate(tree, 1) == tree


@pytest.mark.parametrize("name", ["DEMIPL", "ELIMIPL", "MIPLMA", "ProMIPL", "FastMIPL"])
def test_a_deep_model_of_before_has_no_front_end(name):
    path = f"mipl.deep.{name.lower()}:{name}"
    assert type(mipl.make(name)).__module__ + ":" + name == path
    fitted = estimator(path, features=None, n_features_in_=3)
    assert migrate(fitted, 2) == estimator(path, features=None, n_features_in_=3, features_=None)
