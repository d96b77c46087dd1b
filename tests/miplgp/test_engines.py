"""MIPLGP on the low-rank engine: the contract, the exact engine's accuracy, and what "auto" takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mipl
from mipl.checks import check_mipl_estimator, mipl_checks, small_problem
from mipl.gp.conjugate_gradients import ConjugateGradientEngine
from mipl.miplgp.estimator import MIPLGP
from mipl.miplgp.learning_rows import learning_rows


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return mipl.load("digits", r=1, seed=0).split(seed=0)


def test_the_low_rank_engine_keeps_the_contract() -> None:
    check_mipl_estimator(MIPLGP(engine="low-rank", n_landmarks=100, max_iter=10))


def test_the_low_rank_engine_keeps_the_contract_with_few_landmarks() -> None:
    few = MIPLGP(engine="low-rank", n_landmarks=30, max_iter=10)
    for check in mipl_checks():
        # Which rows k-means starts from depends on how many there are, so copies have other landmarks.
        if check.__name__ != "check_weight_two_is_the_bag_given_twice":
            check(clone(few))


def test_the_subset_engine_keeps_the_contract() -> None:
    check_mipl_estimator(MIPLGP(engine="subset", max_iter=10))


def test_the_subset_engine_keeps_the_contract_with_few_landmarks() -> None:
    few = MIPLGP(engine="subset", n_landmarks=30, cholesky_size=30, max_iter=10)
    bags, candidates, _ = small_problem()
    assert len(clone(few).fit(bags, candidates).landmarks_) == 30
    for check in mipl_checks():
        # Neither the landmarks nor the probes are those of the copies.
        if check.__name__ != "check_weight_two_is_the_bag_given_twice":
            check(clone(few))


@pytest.mark.parametrize(("disambiguation", "all_evaluated"), [("released", False), ("softmax", True), ("bag", True)])
def test_steps_are_extrapolated_where_the_weights_follow_the_parameters(
    disambiguation: str, all_evaluated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations, evaluate = [], ConjugateGradientEngine._evaluate

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        evaluations.append(0)
        return evaluate(self, *args, **kwargs)

    monkeypatch.setattr(ConjugateGradientEngine, "_evaluate", counted)
    bags, candidates, _ = small_problem()
    model = MIPLGP(disambiguation=disambiguation, cholesky_size=0, max_iter=60).fit(bags, candidates)
    assert len(model.loss_curve_) == 60
    assert (len(evaluations) == 60) is all_evaluated


def test_the_subset_engine_learns_from_some_instances_and_conditions_on_all(digits: Any) -> None:
    train, test = digits
    params: dict[str, Any] = {"max_iter": 20, "sampling": "mean", "subset_size": 200, "lengthscale": 10.0}
    subset, exact = (MIPLGP(engine=name, **params).fit(train.bags, train.candidates) for name in ("subset", "exact"))
    rows = learning_rows(train.bags.instances, 0, 200)
    alone = mipl.Bags(train.bags.instances[rows], np.arange(len(rows) + 1))
    part = MIPLGP(**params).fit(alone, train.bags.spread(train.candidates)[rows])
    np.testing.assert_allclose(subset.mean_, part.mean_, atol=1e-3)
    assert subset.lengthscale_ == pytest.approx(part.lengthscale_, rel=1e-3)
    assert len(subset.instances_) == train.bags.n_instances
    answers = [model.predict(test.bags) for model in (exact, part, subset)]
    assert np.mean(answers[2] == answers[0]) > np.mean(answers[1] == answers[0])


@pytest.mark.parametrize("disambiguation", ["released", "bag"])
def test_half_as_many_landmarks_as_instances_answer_like_the_exact_engine(digits: Any, disambiguation: str) -> None:
    train, test = digits
    params: dict[str, Any] = {"max_iter": 20, "disambiguation": disambiguation}
    exact = MIPLGP(**params).fit(train.bags, train.candidates)
    low = MIPLGP(engine="low-rank", n_landmarks=train.bags.n_instances // 2, **params).fit(train.bags, train.candidates)
    assert low.instances_.shape == (train.bags.n_instances // 2, train.bags.n_features)
    assert low.loss_curve_[-1] == pytest.approx(exact.loss_curve_[-1], abs=0.1)
    assert low.lengthscale_ == pytest.approx(exact.lengthscale_, rel=0.2)
    answers = [model.predict(test.bags) for model in (exact, low)]
    assert np.mean(answers[0] == answers[1]) > 0.8
    scores = [np.mean(answer == test.labels) for answer in answers]
    assert abs(scores[0] - scores[1]) < 0.1


def test_auto_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    bags, candidates, _ = small_problem()
    few = (bags.n_instances - 1) // 10
    for n_landmarks, disambiguation, expected in (
        (few, "released", "subset"),
        (few, "uniform", "subset"),
        (few, "bag", "low-rank"),
        (few + 1, "bag", "exact"),
    ):
        params: dict[str, Any] = {"n_landmarks": n_landmarks, "disambiguation": disambiguation, "max_iter": 2}
        model = MIPLGP(engine="auto", verbose=True, **params).fit(bags, candidates)
        assert model.engine_ == expected
        assert f"the {expected} engine" in capsys.readouterr().err
        same = MIPLGP(engine=expected, verbose=True, **params).fit(bags, candidates)
        assert "engine" not in capsys.readouterr().err
        np.testing.assert_array_equal(model.predict_proba(bags), same.predict_proba(bags))


@pytest.mark.parametrize("engine", ["exact", "low-rank", "subset"])
@pytest.mark.parametrize("data", ["duplicates", "constant", "far"])
def test_degenerate_instances_give_finite_probabilities(data: str, engine: str) -> None:
    bags, candidates, _ = small_problem()
    X = bags.instances
    degenerate = {
        "duplicates": np.tile(X[:5], (len(X), 1))[: len(X)],
        "constant": np.ones_like(X),
        "far": np.round(X) * 1e6,
    }[data]
    changed = mipl.Bags(degenerate, bags.offsets)
    model = MIPLGP(engine=engine, max_iter=5).fit(changed, candidates)
    for sampling in ("marginal", "joint", "mean"):
        assert np.isfinite(model.set_params(sampling=sampling).predict_proba(changed)).all()
