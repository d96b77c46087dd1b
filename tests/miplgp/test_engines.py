"""MIPLGP on the low-rank engine: the contract, the exact engine's accuracy, and what "auto" takes."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
from sklearn.base import clone

import mipl
from mipl.checks import check_mipl_estimator, mipl_checks, small_problem
from mipl.errors import ParameterError
from mipl.miplgp import processes
from mipl.miplgp.estimator import MIPLGP


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


@pytest.mark.parametrize(("most", "expected"), [(0, "exact"), (-1, "low-rank")])
def test_auto_takes_the_engine_for_the_number_of_distinct_instances(
    most: int, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bags, candidates, _ = small_problem()
    twice = mipl.Bags(np.repeat(bags.instances, 2, axis=0), 2 * bags.offsets)  # no more distinct instances
    monkeypatch.setattr(processes, "AUTO_EXACT", bags.n_instances + most)
    model = MIPLGP(engine="auto", n_landmarks=20, verbose=True, max_iter=2).fit(twice, candidates)
    assert model.engine_ == expected
    assert f"the {expected} engine" in capsys.readouterr().err
    same = MIPLGP(engine=expected, n_landmarks=20, verbose=True, max_iter=2).fit(twice, candidates)
    assert "engine" not in capsys.readouterr().err
    np.testing.assert_array_equal(model.predict_proba(bags), same.predict_proba(bags))


def test_auto_takes_the_exact_engine_for_a_kernel_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    bags, candidates, _ = small_problem()
    monkeypatch.setattr(processes, "AUTO_EXACT", 0)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    assert MIPLGP(engine="auto", kernel=kernel, max_iter=1).fit(bags, candidates).engine_ == "exact"


def test_an_unknown_engine_is_refused_with_those_that_there_are() -> None:
    bags, candidates, _ = small_problem()
    with pytest.raises(ParameterError, match=r"(?=.*'exact')(?=.*'low-rank').*Got 'subset'"):
        MIPLGP(engine="subset").fit(bags, candidates)


@pytest.mark.parametrize("engine", ["exact", "low-rank"])
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
