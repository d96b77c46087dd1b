"""MIPLClassifier: the contract that every method keeps."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mipl.bags import Bags, as_bags
from mipl.candidates import parse_candidates, parse_labels
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.parameters import check_parameters

__all__ = ["MIPLClassifier", "restrict_to_candidates"]


class MIPLClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of all methods: `fit` on bags and candidate sets, then classify, resolve and explain.

    A method implements `_fit` and `_predict_proba`, and overrides `_predict_instances` and `_resolve` where it knows
    better than the defaults below. Inputs are checked here, once; the underscored methods see a `Bags` and a bool
    mask. Constructors are keyword-only and only assign; `_parameter_constraints` says what each parameter may be, and
    `fit` checks it. What `fit` learns lives in attributes that end in an underscore and hold NumPy arrays, numbers,
    strings, lists, dictionaries or other estimators, so that `save` can write them without pickle.

    Wherever bags are expected, a `MIPLDataset` is taken too: it brings its candidates, labels and class names.

    Attributes
    ----------
    classes_ : (q,) labels, in the column order of every probability matrix
    n_features_in_ : int
    feature_names_in_ : (d,) str
        Only where the training bags had feature names.
    instance_shape_ : tuple of int
    """

    #: Name in the registry and in tables.
    name: ClassVar[str] = ""
    #: Where the method was published.
    citation: ClassVar[str] = ""
    #: What each parameter may be, see `mipl.parameters.check_parameters`.
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

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
        proba = self._predict_proba(bags.single_instances())
        return np.concatenate([proba, np.zeros((len(proba), 1), proba.dtype)], axis=1)

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        """Posterior of the true label (m, q), by default the class probabilities restricted to the candidates."""
        return restrict_to_candidates(self._predict_proba(bags), candidates)

    # ---------------------------------------------------------------- public interface

    def fit(self, bags: Any, candidates: Any = None, classes: Any = None) -> Self:
        """Learn from bags and candidate sets.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            A data set brings its own candidates and class names.
        candidates : (m, q) bool mask, or m collections of labels
            Fitted with a data set or with labels, `predict` gives labels; fitted with a mask alone, class indices.
        classes : (q,) labels, optional
            Names for the columns of a mask, or the full set of labels.
        """
        if isinstance(bags, MIPLDataset) and candidates is None:
            candidates, classes = bags.candidates, bags.classes if classes is None else classes
        elif candidates is None:
            raise DataError("no candidates: pass fit(bags, candidates), or fit(dataset) with a MIPLDataset")
        checked = _bags_of(bags)
        mask, names = parse_candidates(candidates, classes, n_bags=len(checked))
        check_parameters(self)
        self._forget()
        self.classes_ = names
        self.n_features_in_ = checked.n_features
        self.instance_shape_ = checked.instance_shape
        if checked.feature_names is not None:
            self.feature_names_in_ = np.array(checked.feature_names)
        self._fit(checked, mask)
        return self

    def predict_proba(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (m, q) of bags; rows sum to one."""
        return self._predict_proba(self._check_bags(bags))

    def predict(self, bags: Any) -> NDArray[Any]:
        """The most probable label (m,) of each bag."""
        checked = self._check_bags(bags)
        return self.classes_[np.argmax(self._predict_proba(checked), axis=1)]

    def predict_instances(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (n, q + 1) of every instance, the last column for the negative class."""
        return self._predict_instances(self._check_bags(bags))

    def resolve(self, bags: Any, candidates: Any = None) -> NDArray[np.floating[Any]]:
        """Posterior (m, q) of the true label of bags with candidate sets; zero off the candidates.

        A data set brings its own candidates; its classes may be some of the model's, in any order.
        """
        checked = self._check_bags(bags)
        if candidates is None:
            if not isinstance(bags, MIPLDataset):
                raise DataError("no candidates: pass resolve(bags, candidates), or resolve(dataset)")
            candidates = bags.candidate_sets()
        return self._resolve(checked, self._check_candidates(candidates, len(checked)))

    def score(self, bags: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy against true labels (m,).

        Given candidate sets instead (an (m, q) mask or collections of labels), as by a cross-validation that knows
        no true label, it is the share of bags whose predicted label is among their candidates. A data set without `y`
        brings its own labels.
        """
        checked = self._check_bags(bags)
        if y is None:
            y = _labels_of(bags)
        predicted = np.argmax(self._predict_proba(checked), axis=1)
        if _is_label_vector(y):
            truth = parse_labels(y, self.classes_)
            if len(truth) != len(checked):
                raise DataError(f"{len(truth)} labels for {len(checked)} bags; there must be one per bag")
            if (truth < 0).any():
                raise DataError(f"bag {np.flatnonzero(truth < 0)[0]} has no true label; leave it out of the score")
            right = predicted == truth
        else:
            right = self._check_candidates(y, len(checked))[np.arange(len(checked)), predicted]
        return float(np.average(right, weights=sample_weight))

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file; `mipl.load_model` reads it back without running any code from it."""
        from mipl.persistence import save_model

        return save_model(self, path)

    # ---------------------------------------------------------------- checks

    def _check_bags(self, bags: Any) -> Bags:
        """The bags in the layout that the model was fitted with: columns by name where both sides have names."""
        check_is_fitted(self, "classes_")
        checked = _bags_of(bags)
        expected = getattr(self, "feature_names_in_", None)
        if expected is not None and checked.feature_names is not None:
            unknown = sorted(set(checked.feature_names) - set(expected))
            if unknown:
                raise DataError(
                    f"the model was fitted without the feature {unknown[0]!r} ({len(unknown)} such in all); "
                    "leave these columns out, for instance by bags.select_features(model.feature_names_in_)"
                )
            return checked.select_features(expected.tolist())
        if checked.n_features != self.n_features_in_:
            raise DataError(
                f"the bags have {checked.n_features} features, the model was fitted with {self.n_features_in_}"
            )
        return checked

    def _check_candidates(self, candidates: Any, n_bags: int) -> NDArray[np.bool_]:
        return parse_candidates(candidates, self.classes_, n_bags=n_bags)[0]

    def _forget(self) -> None:
        """Drop what an earlier fit learned, so that a second one starts as the first did."""
        for attribute in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, attribute)


def restrict_to_candidates(
    proba: NDArray[np.floating[Any]], candidates: NDArray[np.bool_]
) -> NDArray[np.floating[Any]]:
    """Zero the non-candidates of (m, q) probabilities and normalise rows; rows without mass become uniform."""
    kept = np.where(candidates, proba, 0)
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, candidates.astype(kept.dtype))
    return kept / kept.sum(axis=1, keepdims=True)


def _bags_of(bags: Any) -> Bags:
    return bags.bags if isinstance(bags, MIPLDataset) else as_bags(bags)


def _labels_of(bags: Any) -> Any:
    if not isinstance(bags, MIPLDataset):
        raise DataError("no labels: pass score(bags, labels), or score(dataset)")
    if bags.labels is None:
        raise DataError("the data set has no true labels to score against; pass candidate sets to score by these")
    return np.array(bags.label_names(), dtype=object)


def _is_label_vector(y: Any) -> bool:
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, np.ndarray) and y.dtype != object:
        return y.ndim == 1
    return len(y) > 0 and all(v is None or isinstance(v, int | np.integer | str) for v in y)
