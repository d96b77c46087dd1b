"""MIPLClassifier: the contract that every method keeps."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mipl.bags import Bags, as_bags
from mipl.candidates import parse_candidates, parse_labels
from mipl.errors import DataError

__all__ = ["MIPLClassifier", "restrict_to_candidates"]


class MIPLClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: `fit` on bags and candidate sets, then classify, resolve and explain.

    A method implements `_fit` and `_predict_proba`, and overrides `_predict_instances` and `_resolve` where it knows
    better than the defaults below. Inputs are checked here, once; the underscored methods see a `Bags` and a bool
    mask. Constructors are keyword-only and only assign. What `fit` learns lives in attributes that end in an
    underscore and hold NumPy arrays, numbers, strings, lists, dictionaries or other estimators, so that `save` can
    write them without pickle.

    Attributes
    ----------
    classes_ : (q,) labels, in the column order of every probability matrix
    n_features_in_ : int
    instance_shape_ : tuple of int
    """

    #: Name in the registry and in tables.
    name: ClassVar[str] = ""
    #: Where the method was published.
    citation: ClassVar[str] = ""

    # ---------------------------------------------------------------- what a method implements

    @abstractmethod
    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        """Learn from m bags and their (m, q) candidate mask."""

    @abstractmethod
    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        """Class probabilities (m, q) of bags."""

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        """Instance probabilities (n, q + 1); by default each instance is judged as a bag of its own.

        A method without a notion of negative instances leaves the last column at zero.
        """
        alone = Bags._trusted(bags.instances, np.arange(bags.n_instances + 1), bags.instance_shape)
        proba = self._predict_proba(alone)
        return np.concatenate([proba, np.zeros((len(proba), 1), proba.dtype)], axis=1)

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        """Posterior of the true label (m, q), by default the class probabilities restricted to the candidates."""
        return restrict_to_candidates(self._predict_proba(bags), candidates)

    # ---------------------------------------------------------------- public interface

    def fit(self, bags: Any, candidates: Any, classes: Any = None) -> Self:
        """Learn from bags and candidate sets.

        Parameters
        ----------
        bags : Bags, list of (n_i, d) arrays, or 3-D array
        candidates : (m, q) bool mask, or m collections of labels
            Fitted with a mask, `predict` gives class indices; fitted with labels, it gives labels.
        classes : (q,) labels, optional
            Names for the columns of a mask, or the full set of labels.
        """
        checked = as_bags(bags)
        mask, names = parse_candidates(candidates, classes, n_bags=len(checked))
        self.classes_ = names
        self.n_features_in_ = checked.n_features
        self.instance_shape_ = checked.instance_shape
        self._fit(checked, mask)
        return self

    def predict_proba(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (m, q) of bags; rows sum to one."""
        return self._predict_proba(self._check_bags(bags))

    def predict(self, bags: Any) -> NDArray[Any]:
        """The most probable label (m,) of each bag."""
        return self.classes_[np.argmax(self.predict_proba(bags), axis=1)]

    def predict_instances(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (n, q + 1) of every instance, the last column for the negative class."""
        return self._predict_instances(self._check_bags(bags))

    def resolve(self, bags: Any, candidates: Any) -> NDArray[np.floating[Any]]:
        """Posterior (m, q) of the true label of bags with candidate sets; zero off the candidates."""
        checked = self._check_bags(bags)
        return self._resolve(checked, self._check_candidates(candidates, len(checked)))

    def score(self, bags: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy against true labels (m,).

        Given candidate sets instead (an (m, q) mask or collections of labels), as by a cross-validation that knows
        no true label, it is the share of bags whose predicted label is among their candidates.
        """
        checked = self._check_bags(bags)
        predicted = np.argmax(self._predict_proba(checked), axis=1)
        if _is_label_vector(y):
            truth = parse_labels(y, self.classes_)
            if len(truth) != len(checked):
                raise DataError(f"{len(truth)} labels for {len(checked)} bags; there must be one a bag")
            if (truth < 0).any():
                raise DataError(f"bag {np.flatnonzero(truth < 0)[0]} has no true label; leave it out of the score")
            right = predicted == truth
        else:
            right = self._check_candidates(y, len(checked))[np.arange(len(checked)), predicted]
        return float(np.average(right, weights=sample_weight))

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file; `mipl.load_model` reads it back without running any code from it."""
        from mipl.model_file import save_model

        return save_model(self, path)

    def _check_bags(self, bags: Any) -> Bags:
        check_is_fitted(self, "classes_")
        checked = as_bags(bags)
        if checked.n_features != self.n_features_in_:
            raise DataError(
                f"the bags have {checked.n_features} features, the model was fitted with {self.n_features_in_}"
            )
        return checked

    def _check_candidates(self, candidates: Any, n_bags: int) -> NDArray[np.bool_]:
        return parse_candidates(candidates, self.classes_, n_bags=n_bags)[0]


def restrict_to_candidates(
    proba: NDArray[np.floating[Any]], candidates: NDArray[np.bool_]
) -> NDArray[np.floating[Any]]:
    """Zero the non-candidates of (m, q) probabilities and normalise rows; rows without mass become uniform."""
    kept = np.where(candidates, proba, 0)
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, candidates.astype(kept.dtype))
    return kept / kept.sum(axis=1, keepdims=True)


def _is_label_vector(y: Any) -> bool:
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, np.ndarray):
        return y.ndim == 1 and y.dtype != object
    return len(y) > 0 and all(isinstance(v, int | np.integer | str) for v in y)
