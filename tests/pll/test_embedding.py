"""Mean and MaxMin embeddings, and the adapter that carries partial-label learners to bags."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import mipl
from mipl.checks import check_mipl_estimator, small_problem
from mipl.errors import ParameterError
from mipl.pll import CLPL, GMPLL, LSBCMM, PLAGGD, SURE, EmbeddedPLL, PLkNN, PLLClassifier
from mipl.pll.embedding import embed_bags

LEARNERS = [PLkNN, CLPL, LSBCMM, SURE, GMPLL, PLAGGD]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(0, 2**31))
def test_embeddings_agree_with_numpy_bag_by_bag(sizes, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(size, 3)).astype(np.float32) for size in sizes]
    bags = mipl.Bags.from_list(arrays)
    mean = [a.mean(axis=0, dtype=np.float64) for a in arrays]
    maxmin = [np.concatenate([a.max(axis=0), a.min(axis=0)]) for a in arrays]
    np.testing.assert_allclose(embed_bags(bags, "mean"), mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(embed_bags(bags, "maxmin"), maxmin)


def test_the_order_of_instances_leaves_no_trace():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(50, 20)).astype(np.float32) for _ in range(20)]
    turned = [rng.permutation(a) for a in arrays]
    for scheme in ("mean", "maxmin"):
        first, second = (embed_bags(mipl.Bags.from_list(a), scheme) for a in (arrays, turned))
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("learner", LEARNERS)
def test_maxmin_keeps_the_contract_too(learner):
    check_mipl_estimator(EmbeddedPLL(learner(), embed="maxmin"))


class Shares(PLLClassifier):
    """An own learner as a user would write it: every class as often as it is a candidate."""

    _parameter_constraints: ClassVar = {"power": [Real]}

    def __init__(self, *, power: float = 1.0) -> None:
        self.power = power

    def _fit(self, Z, candidates):
        self.shares_ = candidates.mean(axis=0) ** self.power / np.sum(candidates.mean(axis=0) ** self.power)

    def _predict_proba(self, Z):
        return np.repeat(self.shares_[None], len(Z), axis=0)


def test_an_own_learner_keeps_the_contract_without_further_code():
    model = EmbeddedPLL(Shares(power=2.0))
    check_mipl_estimator(model)
    assert model.name == "Shares"


def test_the_bag_estimator_is_the_learner_on_embedded_bags():
    bags, candidates, _ = small_problem()
    embedded = embed_bags(bags, "maxmin")
    given = SURE(lam=0.5)
    model = EmbeddedPLL(given, embed="maxmin").fit(bags, candidates)
    learner = SURE(lam=0.5).fit(embedded, candidates)
    np.testing.assert_array_equal(model.predict_proba(bags), learner.predict_proba(embedded))
    np.testing.assert_array_equal(model.resolve(bags, candidates), learner.resolve(embedded, candidates))
    assert not hasattr(given, "classes_")


def test_name_and_citation_are_the_learners():
    model = EmbeddedPLL(SURE())
    assert (model.name, model.citation) == ("SURE", SURE.citation)


def test_parameters_reach_the_learner():
    model = EmbeddedPLL(SURE(lam=0.5), embed="maxmin")
    assert model.get_params()["learner__lam"] == 0.5
    copy = clone(model).set_params(learner__lam=0.7, embed="mean")
    assert repr(copy) == "EmbeddedPLL(learner=SURE(lam=0.7))"
    assert repr(model) == "EmbeddedPLL(embed='maxmin', learner=SURE(lam=0.5))"
    assert clone(model).set_params(learner=PLkNN(n_neighbors=3)).fit(*small_problem()[:2]).name == "PL-kNN"


def test_a_grid_search_goes_over_the_embedding_and_over_inner_parameters():
    data = mipl.load("digits", r=1, seed=0)
    grid = {"embed": ["mean", "maxmin"], "learner__n_neighbors": [1, 10]}
    search = GridSearchCV(EmbeddedPLL(PLkNN()), grid, cv=3, error_score="raise").fit(data.bags, data.candidates)
    assert len(set(search.cv_results_["mean_test_score"])) == 4  # every combination was another model
    assert search.best_params_["learner__n_neighbors"] == 10
    best = clone(search.best_estimator_).fit(data.bags, data.candidates)
    np.testing.assert_array_equal(best.predict_proba(data.bags), search.predict_proba(data.bags))


def test_what_cannot_be_embedded_is_refused():
    bags, candidates, _ = small_problem()
    for model, message in (
        (EmbeddedPLL(SURE(), embed="median"), "The 'embed' parameter of EmbeddedPLL must be"),
        (EmbeddedPLL(SURE), "The 'learner' parameter of EmbeddedPLL must be an instance of"),
        (EmbeddedPLL(SURE(lam=-1)), "The 'lam' parameter of SURE must be a float in the range"),
    ):
        with pytest.raises(ParameterError, match=message):
            model.fit(bags, candidates)
    with pytest.raises(ParameterError, match="unknown embedding 'median'; use 'mean' or 'maxmin'"):
        embed_bags(bags, "median")
    with pytest.raises(NotFittedError):
        EmbeddedPLL(SURE()).resolve(bags, candidates)


def test_weights_reach_the_learner_from_pipelines_and_searches():
    bags, candidates, _ = small_problem()
    weight = 1.0 + np.arange(len(bags)) % 3
    direct = EmbeddedPLL(SURE()).fit(bags, candidates, sample_weight=weight)
    pipeline = Pipeline([("model", EmbeddedPLL(SURE()))]).fit(bags, candidates, model__sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict_proba(bags), direct.predict_proba(bags))
    search = GridSearchCV(EmbeddedPLL(SURE()), {"learner__lam": [0.3]}, cv=3, error_score="raise")
    search.fit(bags, candidates, sample_weight=weight)
    np.testing.assert_array_equal(search.predict_proba(bags), direct.predict_proba(bags))
    np.testing.assert_array_equal(
        direct.learner_.predict_proba(embed_bags(bags, "mean")),
        SURE().fit(embed_bags(bags, "mean"), candidates, sample_weight=weight).predict_proba(embed_bags(bags, "mean")),
    )
