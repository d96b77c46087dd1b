"""The scores of a fitted model, as a suite asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mipl import scoring
from mipl.bench.execution.predictions import checked_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mipl.dataset import MIPLDataset

__all__ = ["Fitted", "compute"]


@dataclass
class Fitted:
    """A fitted model with its training and test bags; what several scores share is computed once.

    Parameters
    ----------
    model : Any
        Has `predict`, and perhaps `predict_proba`, `resolve` and `predict_instances`.
    train, test : MIPLDataset
        Training and test bags, with true labels (-1: unknown).
    predicted : (m,) array of int
        Predicted class of each test bag.
    proba : (m, q) array or None
        Class probabilities of the test bags; None for a model that has none.
    """

    model: Any
    train: MIPLDataset
    test: MIPLDataset
    predicted: NDArray[np.int64]
    proba: NDArray[np.floating[Any]] | None

    @cached_property
    def resolved(self) -> NDArray[np.floating[Any]]:
        """Posterior of the true label (m, q) of the training bags."""
        found = self.model.resolve(self.train.bags, self.train.candidates)
        return checked_numbers(found, self.train.candidates.shape, "resolve")


def compute(names: Sequence[str], fitted: Fitted) -> dict[str, float]:
    """The named scores; NaN for one that this model or these data do not have."""
    return {name: _SCORES[name](fitted) for name in names}


def _accuracy(fitted: Fitted) -> float:
    labels, known = _known(fitted.test)
    return scoring.accuracy(labels[known], fitted.predicted[known])


def _with_proba(score: Callable[[Any, Any], float]) -> Callable[[Fitted], float]:
    def scored(fitted: Fitted) -> float:
        if fitted.proba is None:
            return float("nan")
        labels, known = _known(fitted.test)
        return score(labels[known], fitted.proba[known])

    return scored


def _label_free(fitted: Fitted) -> float:
    if fitted.proba is None or not hasattr(fitted.model, "classes_"):
        return float("nan")
    return scoring.label_free_score(fitted.model, fitted.test.bags, fitted.test.candidates)


def _instance_ap(fitted: Fitted) -> float:
    if fitted.test.instance_labels is None or not hasattr(fitted.model, "predict_instances"):
        return float("nan")
    shape = (fitted.test.bags.n_instances, fitted.test.n_classes + 1)
    proba = checked_numbers(fitted.model.predict_instances(fitted.test.bags), shape, "predict_instances")
    return scoring.instance_average_precision(fitted.test.instance_labels, proba)


def _resolved(score: Callable[[Any, Any], float]) -> Callable[[Fitted], float]:
    def scored(fitted: Fitted) -> float:
        labels, known = _known(fitted.train)
        if not known.any() or not hasattr(fitted.model, "resolve"):
            return float("nan")
        return score(labels[known], fitted.resolved[known])

    return scored


def _known(dataset: MIPLDataset) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    assert dataset.labels is not None
    return dataset.labels, dataset.labels >= 0


def _argmax_accuracy(labels: NDArray[np.int64], proba: NDArray[np.floating[Any]]) -> float:
    return scoring.accuracy(labels, proba.argmax(axis=1))


_SCORES: dict[str, Callable[[Fitted], float]] = {
    "accuracy": _accuracy,
    "ece": _with_proba(scoring.calibration_error),
    "ece_chance": _with_proba(lambda labels, proba: scoring.chance_calibration_error(proba)),
    "log_loss": _with_proba(scoring.log_loss),
    "label_free": _label_free,
    "instance_ap": _instance_ap,
    "resolve_accuracy": _resolved(_argmax_accuracy),
    "resolve_ece": _resolved(scoring.calibration_error),
}
