"""Every method in the registry keeps the contract."""

from __future__ import annotations

import numpy as np
import pytest

import mipl
from mipl.base import MIPLClassifier, restrict_to_candidates
from mipl.checks import check_mipl_estimator, mipl_checks, small_problem

ALL = [(name, check) for name in mipl.methods() for check in mipl_checks()]


@pytest.mark.parametrize(("name", "check"), ALL, ids=[f"{n}-{c.__name__.removeprefix('check_')}" for n, c in ALL])
def test_method_keeps_the_contract(name, check):
    check(mipl.make(name))


def test_names_and_classes_agree():
    for name, cls in mipl.methods().items():
        assert cls.name == name
        assert cls.citation
        assert type(mipl.make(name.lower())) is cls


class Constant(MIPLClassifier):
    """A correct method that the broken ones below start from."""

    def __init__(self, *, scale: float = 1.0) -> None:
        self.scale = scale

    def _fit(self, bags, candidates):
        self.shares_ = candidates.mean(axis=0) / candidates.mean(axis=0).sum()

    def _predict_proba(self, bags):
        return np.repeat(self.shares_[None], len(bags), axis=0)


class LogicInInit(Constant):
    def __init__(self, *, scale: float = 1.0) -> None:
        self.scale = 2.0


class ChangesParameter(Constant):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self.scale = self.scale + 1


class NotNormalised(Constant):
    def _predict_proba(self, bags):
        return 2 * super()._predict_proba(bags)


class IgnoresCandidates(Constant):
    def _resolve(self, bags, candidates):
        return self._predict_proba(bags)


class DependsOnOrder(Constant):
    def _predict_proba(self, bags):
        proba = super()._predict_proba(bags) + 1e-3 * np.arange(len(bags))[:, None] * [1, 0, 0]
        return proba / proba.sum(axis=1, keepdims=True)


class LooksAtFirstInstance(Constant):
    def _predict_proba(self, bags):
        proba = super()._predict_proba(bags) + np.abs(bags.instances[bags.offsets[:-1], :1]) * [1, 0, 0]
        return proba / proba.sum(axis=1, keepdims=True)


class Random(Constant):
    def _predict_proba(self, bags):
        proba = super()._predict_proba(bags) + np.random.default_rng().random((len(bags), 1)) * [1, 0, 0]
        return proba / proba.sum(axis=1, keepdims=True)


class ForgetsState(Constant):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self._hidden = self.shares_

    def _predict_proba(self, bags):
        hidden = getattr(self, "_hidden", self.shares_[::-1])
        return np.repeat(hidden[None], len(bags), axis=0)


def test_a_correct_method_passes():
    check_mipl_estimator(Constant())


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LogicInInit, "__init__ changes"),
        (ChangesParameter, "fit changes the parameter scale"),
        (NotNormalised, "do not sum to one"),
        (IgnoresCandidates, "resolve gives mass to non-candidates"),
        (DependsOnOrder, "the order of bags matters"),
        (LooksAtFirstInstance, "the order inside a bag matters"),
        (Random, "not deterministic"),
        (ForgetsState, "saving changes the result"),
    ],
)
def test_each_broken_promise_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_mipl_estimator(broken())


def test_restriction_keeps_ratios_and_falls_back_to_uniform():
    proba = np.array([[0.2, 0.2, 0.6], [0.0, 1.0, 0.0]])
    mask = np.array([[True, True, False], [True, False, True]])
    np.testing.assert_allclose(restrict_to_candidates(proba, mask), [[0.5, 0.5, 0], [0.5, 0, 0.5]])


def test_score_takes_labels_names_and_candidates():
    bags, candidates, labels = small_problem()
    model = mipl.make("PL-kNN", k=3).fit(bags, candidates, classes=["x", "y", "z"])
    right = model.predict(bags) == np.array(["x", "y", "z"])[labels]
    assert model.score(bags, labels) == right.mean()
    assert model.score(bags, np.array(["x", "y", "z"])[labels]) == right.mean()
    chosen = candidates[np.arange(len(bags)), model.predict_proba(bags).argmax(axis=1)]
    assert model.score(bags, candidates) == chosen.mean()
