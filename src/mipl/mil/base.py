"""MILClassifier: the contract of binary multi-instance learners."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mipl.bags import Bags, as_bags
from mipl.errors import DataError
from mipl.parameters import check_parameters
from mipl.persistence import save_model

__all__ = ["FrontEnd", "LogOdds", "MILClassifier"]

#: Log-odds of being positive: of bags (m,) and of instances (n,).
LogOdds = tuple[NDArray[np.float64], NDArray[np.float64]]


class FrontEnd(Protocol):
    """What does not depend on which label is the positive one, so that one-vs-rest problems share it."""

    def fit(self, bags: Bags, groups: NDArray[np.bool_]) -> Self:
        """Learn from m bags; `groups` (m, g) says which bags hold which label."""
        ...

    def transform(self, bags: Bags) -> NDArray[Any]:
        """Features (n, k) of all instances."""
        ...


class MILClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """Learn from bags that are positive or negative; a bag is positive because of some of its instances.

    A method names its front end and implements `_fit` and `_log_odds` on the front end's features. Training bags come
    with *copies* (m, 2): how often a bag occurs with a negative and with a positive label. Plain labels are one copy
    each; a bag that was given several labels in turn has more, without being stored or transformed more than once.
    `_parameter_constraints` says what each parameter may be, and `fit` checks it. ``OneVsRest(learner)`` carries a
    learner to bags with candidate sets.

    Attributes
    ----------
    classes_ : array([0, 1])
    n_features_in_ : int
        Number d of features.
    front_end_ : FrontEnd
        What turns instances into the features of the learner.
    """

    #: Name in tables.
    name: ClassVar[str] = ""
    #: Where the method was published.
    citation: ClassVar[str] = ""
    #: What each parameter may be, see `mipl.parameters.check_parameters`.
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    #: How joblib runs several fits at once; threads share the features without a copy.
    parallel: ClassVar[Literal["threads", "processes"]] = "threads"

    # ---------------------------------------------------------------- what a method implements

    @abstractmethod
    def _front_end(self) -> FrontEnd:
        """The front end, not fitted."""

    @abstractmethod
    def _fit(self, features: NDArray[Any], bags: Bags, copies: NDArray[np.int64]) -> None:
        """Learn from instance features (n, k), the bags they belong to and the bags' copies (m, 2)."""

    @abstractmethod
    def _log_odds(self, features: NDArray[Any], bags: Bags) -> LogOdds:
        """Log-odds of bags (m,) and of instances (n,)."""

    # ---------------------------------------------------------------- public interface

    def fit(self, bags: Any, y: Any) -> Self:
        """Learn from bags and their labels.

        Parameters
        ----------
        bags : Bags, list of (n_i, d) arrays, or 3-D array
        y : (m,) of 0 and 1, or bool
        """
        check_parameters(self)
        checked = as_bags(bags)
        copies = np.eye(2, dtype=np.int64)[_as_binary(y, len(checked))]
        self.front_end_ = self._front_end().fit(checked, copies > 0)
        self._fit(self.front_end_.transform(checked), checked, copies)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = checked.n_features
        return self

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Log-odds (m,) of each bag being positive."""
        return self._both_log_odds(bags)[0]

    def predict_proba(self, bags: Any) -> NDArray[np.float64]:
        """Probabilities (m, 2) of each bag being negative and positive."""
        return _two_columns(self._both_log_odds(bags)[0])

    def predict(self, bags: Any) -> NDArray[np.int64]:
        """0 or 1 for each bag (m,)."""
        return (self.decision_function(bags) > 0).astype(np.int64)

    def predict_instances(self, bags: Any) -> NDArray[np.float64]:
        """Probabilities (n, 2) of each instance being negative and positive."""
        return _two_columns(self._both_log_odds(bags)[1])

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file; `mipl.load_model` reads it back without running any code from it."""
        return save_model(self, path)

    def _both_log_odds(self, bags: Any) -> LogOdds:
        check_is_fitted(self, "classes_")
        checked = as_bags(bags)
        if checked.n_features != self.n_features_in_:
            raise DataError(
                f"the bags have {checked.n_features} features, the model was fitted with {self.n_features_in_}"
            )
        return self._log_odds(self.front_end_.transform(checked), checked)


def _two_columns(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([expit(-log_odds), expit(log_odds)], axis=1)


def _as_binary(y: Any, n_bags: int) -> NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.shape != (n_bags,):
        raise DataError(f"expected one label per bag ({n_bags}), got shape {labels.shape}")
    bad = np.flatnonzero((labels != 0) & (labels != 1))
    if len(bad):
        raise DataError(f"bag {bad[0]} has the label {labels[bad[0]]!r}; labels are 0 (negative) and 1 (positive)")
    if len(np.unique(labels)) < 2:
        raise DataError(f"all bags have the label {labels[0]}; pass negative and positive bags")
    return labels.astype(np.int64)
