"""check_mipl_estimator passes what keeps the contract, and finds each way of breaking it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from mipl.bags import as_bags
from mipl.base import MIPLClassifier
from mipl.checks import check_mipl_estimator, mipl_checks, small_dataset, small_problem
from mipl.compute import seed_of
from mipl.dataset import MIPLDataset


class Centroids(MIPLClassifier):
    """A correct method that the broken ones below start from: classes by the distance to the mean of their bags."""

    _parameter_constraints: ClassVar = {
        "scale": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, scale: float = 1.0, random_state: Any = 0) -> None:
        self.scale = scale
        self.random_state = random_state

    def _fit(self, bags, candidates):
        weight = candidates / candidates.sum(axis=0)
        jitter = np.random.default_rng(seed_of(self.random_state)).standard_normal((candidates.shape[1], 1))
        self.centres_ = weight.T @ bags.mean(bags.instances.astype(np.float64)) + 1e-3 * jitter

    def _predict_proba(self, bags):
        means = bags.mean(bags.instances.astype(np.float64))
        squares = ((means[:, None] - self.centres_) ** 2).sum(axis=2)
        return softmax(-self.scale * squares, axis=1)


class WeightedCentroids(Centroids):
    """A correct method with sample weights."""

    supports_sample_weight = True

    def _fit(self, bags, candidates):
        self._fit_weighted(bags, candidates, np.ones(len(bags)))

    def _fit_weighted(self, bags, candidates, sample_weight):
        super()._fit(bags, candidates * sample_weight[:, None])


class Wrapper(MIPLClassifier):
    """A correct wrapper: it takes its learner by position."""

    _parameter_constraints: ClassVar = {
        "learner": [MIPLClassifier],
        "power": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, learner: MIPLClassifier, *, power: int = 1) -> None:
        self.learner = learner
        self.power = power

    def _fit(self, bags, candidates):
        self.learner_ = clone(self.learner).fit(bags, candidates)

    def _predict_proba(self, bags):
        proba = self.learner_.predict_proba(bags) ** self.power
        return proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "good",
    [Centroids(), Centroids(scale=3.0), WeightedCentroids(), Wrapper(Centroids()), Wrapper(Wrapper(Centroids()))],
)
def test_a_correct_method_passes(good):
    check_mipl_estimator(good)


# -------------------------------------------------------------------- broken constructors and parameters


class LogicInInit(Centroids):
    def __init__(self, *, scale: float = 1.0, random_state: Any = 0) -> None:
        super().__init__(random_state=random_state)
        self.scale = 2.0


class StateInInit(Centroids):
    def __init__(self, *, scale: float = 1.0, random_state: Any = 0) -> None:
        super().__init__(scale=scale, random_state=random_state)
        self.cache = {}


class ByPosition(Centroids):
    def __init__(self, scale: float = 1.0, *, random_state: Any = 0) -> None:
        super().__init__(scale=scale, random_state=random_state)


class SecondByPosition(Wrapper):
    def __init__(self, learner: MIPLClassifier, power: int = 1) -> None:
        super().__init__(learner, power=power)


class ChangesWhatIsSet(Centroids):
    def set_params(self, **params):
        return super().set_params(**{name: float(value) + 0.0 for name, value in params.items()})


class ChangesParameter(Centroids):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self.scale = self.scale + 1


class FitsItsParameter(Wrapper):
    def _fit(self, bags, candidates):
        self.learner_ = self.learner.fit(bags, candidates)


class NoConstraint(Centroids):
    _parameter_constraints: ClassVar = {"random_state": ["random_state"]}


class ConstraintOfNothing(Centroids):
    _parameter_constraints: ClassVar = {**Centroids._parameter_constraints, "k": [Integral]}


class AnyObject(Centroids):
    _parameter_constraints: ClassVar = {**Centroids._parameter_constraints, "scale": "no_validation"}

    def _predict_proba(self, bags):
        return np.repeat(softmax(self.centres_[:, :1].T, axis=1), len(bags), axis=0)


class OtherWords(Centroids):
    _parameter_constraints: ClassVar = {**Centroids._parameter_constraints, "scale": "no_validation"}

    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self.centres_ = self.centres_ * float(self.scale)


class SeedMustBeInteger(Centroids):
    _parameter_constraints: ClassVar = {**Centroids._parameter_constraints, "random_state": [Integral]}


class SeedAtPrediction(Centroids):
    def _predict_proba(self, bags):
        shift = np.random.default_rng(seed_of(self.random_state)).random(len(self.classes_))
        return softmax(np.log(super()._predict_proba(bags)) + shift, axis=1)


# -------------------------------------------------------------------- broken answers


class NotNormalised(Centroids):
    def _predict_proba(self, bags):
        return 2 * super()._predict_proba(bags)


class IgnoresCandidates(Centroids):
    def _resolve(self, bags, candidates):
        return self._predict_proba(bags)


class PredictsOtherwise(Centroids):
    def predict(self, bags):
        proba = self.predict_proba(bags)
        return self.classes_[np.argmin(proba, axis=1)]


class DependsOnOrder(Centroids):
    def _predict_proba(self, bags):
        return softmax(
            np.log(super()._predict_proba(bags)) + np.arange(len(bags))[:, None] * (self.classes_ == 0), axis=1
        )


class LooksAtFirstInstance(Centroids):
    def _predict_proba(self, bags):
        return super()._predict_proba(as_bags([bag[:1] for bag in bags]))


class Random(Centroids):
    def _predict_proba(self, bags):
        return softmax(np.random.default_rng().random((len(bags), len(self.classes_))), axis=1)


class AnswersUnfitted(Centroids):
    def predict_instances(self, bags):
        return np.zeros((as_bags(bags).n_instances, len(getattr(self, "classes_", [0, 1, 2])) + 1))


class UnfittedAttributeError(Centroids):
    def resolve(self, bags, candidates=None):
        return self._resolve(as_bags(bags), self._check_candidates(candidates, bags, len(bags)))


class Remembers(Centroids):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self._fits = getattr(self, "_fits", 0) + 1
        self.centres_ = self.centres_ * self._fits


class KeepsNames(Centroids):
    def _forget(self):
        pass


# -------------------------------------------------------------------- broken votes, backgrounds and weights


class CountsVotes(Centroids):
    def _fit_supervised(self, bags, supervision):
        self._fit(bags, supervision.candidates)
        if supervision.weights is not None:
            self.centres_ = self.centres_ * supervision.weights.max()


class NothingKnownIsTheFirstClass(Centroids):
    def fit(self, bags, candidates=None, classes=None, **more):
        if isinstance(candidates, list):
            candidates = [[0] if entry is None else entry for entry in candidates]
        return super().fit(bags, candidates, classes, **more)


class DropsBackground(Centroids):
    def _fit_supervised(self, bags, supervision):
        self.background_ = supervision.background
        self._fit(bags, supervision.candidates)

    def _predict_proba(self, bags):
        proba = super()._predict_proba(bags)
        if self.background_ is not None:
            proba[:, self.background_] = 0
        return proba


class DropsSampleWeights(Centroids):
    def fit(self, bags, candidates=None, classes=None, *, sample_weight=None, **more):
        return super().fit(bags, candidates, classes, **more)


class RefusesInManyWords(Centroids):
    _no_sample_weight = "there are reasons,\nand more reasons"


class WeightsThatAreNoProbabilities(WeightedCentroids):
    def _fit_weighted(self, bags, candidates, sample_weight):
        super()._fit_weighted(bags, candidates, sample_weight)
        self.total_ = 1.0 if (sample_weight == 1).all() else 2.0

    def _predict_proba(self, bags):
        return super()._predict_proba(bags) * getattr(self, "total_", 1.0)


class OnesAreWeights(WeightedCentroids):
    def fit(self, bags, candidates=None, classes=None, *, sample_weight=None, **more):
        super().fit(bags, candidates, classes, sample_weight=sample_weight, **more)
        if sample_weight is not None:
            self.centres_ = self.centres_ * (1 + 1e-12)
        return self


class IgnoresSampleWeights(WeightedCentroids):
    def _fit_weighted(self, bags, candidates, sample_weight):
        super()._fit_weighted(bags, candidates, np.ones(len(bags)))


class SquaresSampleWeights(WeightedCentroids):
    def _fit_weighted(self, bags, candidates, sample_weight):
        super()._fit_weighted(bags, candidates, sample_weight**2)


class KeepsBagsOfNoWeight(WeightedCentroids):
    def fit(self, bags, candidates=None, classes=None, *, sample_weight=None, **more):
        if sample_weight is not None:
            sample_weight = np.where(np.asarray(sample_weight) == 0, 0.1, sample_weight)
        return super().fit(bags, candidates, classes, sample_weight=sample_weight, **more)


class ScoresAllAlike(Centroids):
    def score(self, bags, y=None, sample_weight=None):
        return super().score(bags, y)


class TakesAnyWeight(WeightedCentroids):
    def fit(self, bags, candidates=None, classes=None, *, sample_weight=None, **more):
        sample_weight = None if sample_weight is None else np.abs(sample_weight)
        return super().fit(bags, candidates, classes, sample_weight=sample_weight, **more)


# -------------------------------------------------------------------- broken names and files


class DropsClassNames(Centroids):
    def fit(self, bags, candidates=None, classes=None):
        if isinstance(bags, MIPLDataset):
            return super().fit(bags.bags, bags.candidates)
        return super().fit(bags, candidates, classes)


class DropsFeatureNames(Centroids):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self.__dict__.pop("feature_names_in_", None)


class ColumnsByPosition(Centroids):
    def predict_proba(self, bags):
        bags = as_bags(bags.bags if isinstance(bags, MIPLDataset) else bags)
        return super().predict_proba([bag.copy() for bag in bags])


class ForgetsState(Centroids):
    def _fit(self, bags, candidates):
        super()._fit(bags, candidates)
        self._hidden = self.centres_

    def _predict_proba(self, bags):
        if not hasattr(self, "_hidden"):
            return np.full((len(bags), 3), 1 / 3)
        return super()._predict_proba(bags)


class AcceptsAnyWidth(Centroids):
    def _check_bags(self, bags):
        bags = as_bags(bags.bags if isinstance(bags, MIPLDataset) else bags)
        width = getattr(self, "n_features_in_", bags.n_features)
        if bags.feature_names is None and bags.n_features > width:
            bags = as_bags([bag[:, :width] for bag in bags])
        return super()._check_bags(bags)


class BelievesInAnything(Centroids):
    def predict_proba(self, bags):
        return self._predict_proba(self._check_bags(bags))


BROKEN = [
    (LogicInInit(), "__init__ changes or drops the parameter scale"),
    (StateInInit(), r"__init__ sets \['cache'\], which are no parameters"),
    (ByPosition(), "parameter scale is not keyword-only"),
    (SecondByPosition(Centroids()), "parameter power is not keyword-only"),
    (ChangesWhatIsSet(random_state=1), "set_params changes random_state"),
    (ChangesParameter(), "fit changes the parameter scale"),
    (FitsItsParameter(Centroids()), "fits its parameter learner"),
    (NoConstraint(), "the parameter scale has no entry in _parameter_constraints"),
    (Wrapper(NoConstraint()), "NoConstraint: the parameter scale has no entry"),
    (ConstraintOfNothing(), r"_parameter_constraints names \['k'\], which are no parameters"),
    (AnyObject(), "the parameter scale accepts any object"),
    (OtherWords(), "any object ends in TypeError, not in ParameterError"),
    (SeedMustBeInteger(), "random_state=None ends in ParameterError"),
    (SeedAtPrediction(), "two predictions of one fit differ where random_state is None"),
    (Wrapper(SeedAtPrediction()), "two predictions of one fit differ where learner__random_state is None"),
    (NotNormalised(), "rows of predict_proba do not sum to one"),
    (IgnoresCandidates(), "resolve gives mass to non-candidates"),
    (PredictsOtherwise(), "predict is not the argmax of predict_proba"),
    (DependsOnOrder(), "the order of bags matters"),
    (LooksAtFirstInstance(), "the order inside a bag matters"),
    (Random(random_state=0), "two predictions of one fit differ"),
    (AnswersUnfitted(), "predict_instances accepts a model that is not fitted"),
    (UnfittedAttributeError(), "resolve: a model that is not fitted ends in AttributeError"),
    (Remembers(), "after a second fit depends on the first"),
    (KeepsNames(), r"a second fit keeps \['feature_names_in_'\] of the first"),
    (CountsVotes(), "equal odds on the candidates differ from the candidate set"),
    (NothingKnownIsTheFirstClass(), "None in the place of a candidate set differs"),
    (DropsBackground(), "after a fit with a background class are no probabilities"),
    (DropsSampleWeights(), "accepts sample weights, which it does not support"),
    (RefusesInManyWords(), "about sample weights, which it does not support has more than one line"),
    (WeightsThatAreNoProbabilities(), "after a fit with sample weights are no probabilities"),
    (OnesAreWeights(), "sample weights of one change the answers"),
    (IgnoresSampleWeights(), "a bag of weight two differs from the bag given twice by"),
    (SquaresSampleWeights(), "a bag of weight two differs from the bag given twice by"),
    (KeepsBagsOfNoWeight(), "a bag of weight zero differs from a bag that is left out by"),
    (ScoresAllAlike(), "score does not weight bags: it gives 0.5 where 0.75"),
    (TakesAnyWeight(), "fit of TakesAnyWeight accepts a negative sample weight"),
    (DropsClassNames(), "fit on a data set drops its class names"),
    (DropsFeatureNames(), "feature_names_in_ is not what"),
    (ColumnsByPosition(), "columns are matched by position"),
    (ForgetsState(), "saving changes the result"),
    (BelievesInAnything(), "predict_proba gives mass to a class that is a candidate of no training bag"),
    (AcceptsAnyWidth(), "accepts other features than fitted"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda v: v if isinstance(v, str) else type(v).__name__)
def test_each_broken_promise_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_mipl_estimator(broken)


def test_every_check_finds_something():
    """A check that no broken method fails could be empty."""
    useless = {check.__name__ for check in mipl_checks()}
    for broken, _ in BROKEN:
        for check in [check for check in mipl_checks() if check.__name__ in useless]:
            try:
                check(clone(broken))
            except Exception as error:  # a broken method may fail in any way; only the checks' own words count
                if isinstance(error, AssertionError):
                    useless.discard(check.__name__)
    assert not useless


def test_the_small_problem_can_be_learned():
    bags, candidates, labels = small_problem()
    assert Centroids(scale=10).fit(bags, candidates).score(bags, labels) > 0.9
    assert Centroids(scale=10).fit(small_dataset()).score(small_dataset()) > 0.9
