"""Checks of sample weights: a weight per bag in `fit`, where the method declares it, and in `score`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from mipl.base import MIPLClassifier
from mipl.check_assertions import assert_probabilities, assert_refused, seeded
from mipl.errors import DataError, ParameterError
from mipl.small_problems import small_problem

__all__ = ["sample_weight_checks"]

#: How far probabilities may be apart that were learned from weights and from copies of the bags: sums are taken in
#: another order, and a method in single precision that stops its search early makes more of that than rounding.
_COPIES_TOLERANCE = 1e-3


def sample_weight_checks() -> Iterator[Callable[[MIPLClassifier], None]]:
    """The checks one by one."""
    yield check_sample_weights_are_used_or_refused
    yield check_sample_weights_of_one_change_nothing
    yield check_weight_two_is_the_bag_given_twice
    yield check_weight_zero_leaves_the_bag_out
    yield check_score_weights_bags
    yield check_bad_sample_weights_are_refused


def check_sample_weights_are_used_or_refused(estimator: MIPLClassifier) -> None:
    """Fit takes sample weights where `supports_sample_weight` says so, else it refuses them in one line."""
    bags, candidates, _ = small_problem()
    who, weight = type(estimator).__name__, np.linspace(0.5, 2, len(bags))
    if estimator.supports_sample_weight:
        fitted = clone(estimator).fit(bags, candidates, sample_weight=weight)
        assert_probabilities("predict_proba after a fit with sample weights", fitted, bags)
        return
    what = "sample weights, which it does not support"
    refused = assert_refused(
        who, what, ParameterError, lambda: clone(estimator).fit(bags, candidates, sample_weight=weight), "sample_weight"
    )
    assert "\n" not in refused, f"{who}: the error about {what} has more than one line"


def check_sample_weights_of_one_change_nothing(estimator: MIPLClassifier) -> None:
    """Weights of one are bit for bit the same as none."""
    if not estimator.supports_sample_weight:
        return
    bags, candidates, _ = small_problem()
    weighted = seeded(estimator).fit(bags, candidates, sample_weight=np.ones(len(bags)))
    same = np.array_equal(weighted.predict_proba(bags), seeded(estimator).fit(bags, candidates).predict_proba(bags))
    assert same, "sample weights of one change the answers"


def check_weight_two_is_the_bag_given_twice(estimator: MIPLClassifier) -> None:
    """Whole weights give new bags the probabilities that copies of the training bags give them.

    Copies of a bag are put into one group, so that a method that holds out bags holds them out together.
    """
    if not estimator.supports_sample_weight:
        return
    bags, candidates, _ = small_problem()
    new, *_ = small_problem(seed=8)
    m = len(bags)
    weight = 1 + np.arange(m) % 3
    copies = np.repeat(np.arange(m), weight)
    weighted = seeded(estimator).fit(bags, candidates, groups=np.arange(m), sample_weight=weight).predict_proba(new)
    copied = seeded(estimator).fit(bags[copies], candidates[copies], groups=copies).predict_proba(new)
    apart = np.abs(weighted - copied).max()
    assert apart < _COPIES_TOLERANCE, f"a bag of weight two differs from the bag given twice by {apart:.2g}"


def check_weight_zero_leaves_the_bag_out(estimator: MIPLClassifier) -> None:
    """Bags of weight zero are as if they were not there."""
    if not estimator.supports_sample_weight:
        return
    bags, candidates, _ = small_problem()
    kept = np.arange(len(bags)) % 4 > 0
    weight = 1.0 + np.arange(len(bags)) % 2
    with_zeros = seeded(estimator).fit(bags, candidates, sample_weight=np.where(kept, weight, 0))
    without = seeded(estimator).fit(bags[kept], candidates[kept], sample_weight=weight[kept])
    apart = np.abs(with_zeros.predict_proba(bags) - without.predict_proba(bags)).max()
    assert apart < _COPIES_TOLERANCE, f"a bag of weight zero differs from a bag that is left out by {apart:.2g}"


def check_score_weights_bags(estimator: MIPLClassifier) -> None:
    """Score is the weighted share of right answers; every method takes weights there."""
    bags, candidates, _ = small_problem()
    estimator.fit(bags, candidates)
    right = np.arange(len(bags)) % 2 == 0
    predicted = estimator.predict_proba(bags).argmax(axis=1)
    labels = estimator.classes_[np.where(right, predicted, (predicted + 1) % len(estimator.classes_))]
    weight = np.where(right, 3.0, 1.0)
    score = estimator.score(bags, labels, sample_weight=weight)
    assert np.isclose(score, 0.75), (
        f"score does not weight bags: it gives {score:.3g} where 0.75 of the weight is right"
    )


def check_bad_sample_weights_are_refused(estimator: MIPLClassifier) -> None:
    """A weight that is negative or no number, too few of them, and all zero end in a DataError, naming the bag."""
    bags, candidates, labels = small_problem()
    estimator.fit(bags, candidates)
    calls: dict[str, Callable[[Any], Any]] = {
        "score": lambda weight: estimator.score(bags, labels, sample_weight=weight)
    }
    if estimator.supports_sample_weight:
        calls["fit"] = lambda weight: clone(estimator).fit(bags, candidates, sample_weight=weight)
    ones = np.ones(len(bags))
    for name, call in calls.items():
        for what, weight, mentions in (
            ("a negative sample weight", np.where(np.arange(len(bags)) == 4, -1, 1), "bag 4"),
            ("a sample weight that is no number", np.where(np.arange(len(bags)) == 5, np.nan, 1), "bag 5"),
            ("fewer sample weights than bags", ones[1:], "sample_weight"),
            ("sample weights that are all zero", 0 * ones, "zero"),
        ):
            who = f"{name} of {type(estimator).__name__}"
            assert_refused(who, what, DataError, lambda: call(weight), mentions)  # noqa: B023
