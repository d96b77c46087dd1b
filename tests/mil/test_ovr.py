"""One learner per class: the paper's decision rule, the candidate policies, and composition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import mipl
from mipl.checks import check_mipl_estimator, small_problem
from mipl.errors import ParameterError
from mipl.mil import LMVGPMIL, MIVAE, VGPMIL, VWSGP, OneVsRest

GAUSSIAN = [VWSGP, VGPMIL, LMVGPMIL]


def _rule(p: NDArray[np.float64]) -> int:
    """The paper's decision, case by case, from the q probabilities of being positive."""
    positive = np.flatnonzero(p > 0.5)
    if len(positive) == 1:
        return int(positive[0])
    if len(positive) > 1:
        return int(positive[np.argmax(p[positive])])
    return int(np.argmin(np.maximum(p, 1 - p)))


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_predictions_follow_the_papers_decision_rule(learner: type) -> None:
    train, test = mipl.load("digits", r=1, seed=0).split(train_size=0.5, seed=0)
    model = OneVsRest(learner()).fit(train.bags, train.candidates)
    p = expit(model._log_odds(test.bags)[0])
    assert model.predict(test.bags).tolist() == [_rule(row) for row in p]
    assert len({int((row > 0.5).sum()) for row in p}) > 1  # more than one case of the rule was seen


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_with_one_candidate_both_policies_coincide(learner: type) -> None:
    bags, _, labels = small_problem()
    any_, duplicate = (
        OneVsRest(learner(), candidate_policy=policy).fit(bags, labels) for policy in ("any", "duplicate")
    )
    assert np.array_equal(any_.predict_proba(bags), duplicate.predict_proba(bags))


def test_with_several_candidates_the_policies_differ() -> None:
    bags, candidates, _ = small_problem()
    any_, duplicate = (
        OneVsRest(VGPMIL(), candidate_policy=policy).fit(bags, candidates) for policy in ("any", "duplicate")
    )
    assert not np.allclose(any_.predict_proba(bags), duplicate.predict_proba(bags))


@pytest.mark.parametrize("learner", [*GAUSSIAN, pytest.param(MIVAE, marks=pytest.mark.slow)])
def test_parallel_fits_give_the_same_answers(learner: type) -> None:
    bags, candidates, _ = small_problem()
    params = {"max_epochs": 3, "hidden_dim": 16, "latent_dim": 4} if learner is MIVAE else {}
    one, two = (OneVsRest(learner(**params), n_jobs=n_jobs).fit(bags, candidates) for n_jobs in (1, 2))
    assert np.array_equal(one.predict_proba(bags), two.predict_proba(bags))


def test_a_class_that_no_bag_has_and_one_that_all_have_do_no_harm() -> None:
    bags, candidates, _ = small_problem()
    candidates = np.concatenate([candidates, np.zeros((24, 1), bool), np.ones((24, 1), bool)], axis=1)
    model = OneVsRest(VGPMIL()).fit(bags, candidates)
    assert np.isfinite(model.predict_proba(bags)).all()
    assert not (model.predict(bags) == 3).any()


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_the_papers_recomposition_keeps_the_contract_too(learner: type) -> None:
    check_mipl_estimator(OneVsRest(learner(n_inducing=10), candidate_policy="duplicate"))


def test_name_and_citation_are_the_learners() -> None:
    model = OneVsRest(LMVGPMIL())
    assert (model.name, model.citation) == ("LM-VGPMIL", LMVGPMIL.citation)


def test_parameters_reach_every_learner_and_the_given_one_stays_unfitted() -> None:
    given = VGPMIL(n_inducing=9)
    model = clone(OneVsRest(given)).set_params(learner__max_iter=3, candidate_policy="duplicate")
    assert (model.get_params()["learner__n_inducing"], given.max_iter) == (9, 50)
    model.fit(*small_problem()[:2])
    assert len(model.front_end_.points_) == 9
    assert [learner.max_iter for learner in model.learners_] == [3, 3, 3]
    assert not hasattr(model.learner, "mean_")


def test_a_grid_search_goes_over_the_policy_and_over_inner_parameters() -> None:
    data = mipl.load("digits", r=1, seed=0)
    grid = {"candidate_policy": ["any", "duplicate"], "learner__n_inducing": [5, 50]}
    search = GridSearchCV(OneVsRest(VGPMIL(max_iter=5)), grid, cv=3, error_score="raise")
    search.fit(data.bags, data.candidates)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.best_params_ == {"candidate_policy": "any", "learner__n_inducing": 50}


def test_what_is_no_binary_learner_or_has_a_wrong_parameter_is_refused() -> None:
    bags, candidates, _ = small_problem()
    for model, message in (
        (OneVsRest(VGPMIL), "The 'learner' parameter of OneVsRest must be an instance of"),
        (OneVsRest(VGPMIL(), candidate_policy="all"), "The 'candidate_policy' parameter of OneVsRest must be"),
        (OneVsRest(VGPMIL(), n_jobs=0), "The 'n_jobs' parameter of OneVsRest must be"),
        (OneVsRest(VGPMIL(max_iter=0)), "The 'max_iter' parameter of VGPMIL must be"),
        (OneVsRest(VGPMIL(n_inducing=2)), "n_inducing=2 is too small: each of the 3 labels needs a point"),
    ):
        with pytest.raises(ParameterError, match=message):
            model.fit(bags, candidates)
    with pytest.raises(NotFittedError):
        OneVsRest(VGPMIL()).predict_instances(bags)
