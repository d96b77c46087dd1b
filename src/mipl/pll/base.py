"""PLLClassifier: the contract of partial-label learners on plain arrays."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from mipl.arrays import as_array
from mipl.base import refusal_of_weights, restrict_to_candidates
from mipl.candidates import is_label_vector, parse_candidates, parse_labels, parse_votes
from mipl.errors import DataError, ParameterError
from mipl.parameters import check_parameters
from mipl.persistence import save_model
from mipl.supervision import Supervision, check_sample_weight, warn_sets_only

__all__ = ["PLLClassifier"]

#: Features that vary by less are nothing to a method that penalises weights.
_SMALL = 1e-4
#: Samples that are predicted at once, which bounds the memory of kernel and neighbour blocks.
_PREDICTION_BLOCK = 2048


class PLLClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """Learn from n samples (n, d) with a candidate set each, one candidate being true.

    A method implements `_fit` and `_predict_proba`, and overrides `_resolve` where it knows better than to restrict
    its probabilities. They see a finite float64 array and a bool mask. `_parameter_constraints` says what each
    parameter may be, and `fit` checks it. Distances and penalties compare features as they are: bring these to a
    common scale first. ``EmbeddedPLL(learner)`` carries a learner to bags.

    Attributes
    ----------
    classes_ : (q,) labels, in the column order of every probability matrix
    n_features_in_ : int
        Number d of features.
    """

    #: Name in tables.
    name: ClassVar[str] = ""
    #: Where the method was published.
    citation: ClassVar[str] = ""
    #: What each parameter may be, see `mipl.parameters.check_parameters`.
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    #: Whether the method penalises weights of features, and so takes features that are very small for nothing.
    penalises_weights: ClassVar[bool] = False
    #: Whether `fit` takes a weight per sample; a method that says so implements `_fit_weighted`.
    supports_sample_weight: ClassVar[bool] = False
    #: Why it does not, for the error.
    _no_sample_weight: ClassVar[str] = ""

    # ---------------------------------------------------------------- what a method implements

    @abstractmethod
    def _fit(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> None:
        """Learn from samples (n, d) and their candidate mask (n, q)."""

    def _fit_weighted(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_], weight: NDArray[np.float64]) -> None:
        """Learn as `_fit` does, with positive weights (n,): a sample of weight 2 counts as one that is given twice."""
        raise NotImplementedError(f"{type(self).__name__} supports sample weights but has no _fit_weighted")

    @abstractmethod
    def _predict_proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class probabilities (n, q)."""

    def _resolve(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        """Probabilities (n, q) of the true label, zero off the candidates."""
        return restrict_to_candidates(self._predict_proba(Z), candidates)

    # ---------------------------------------------------------------- public interface

    def fit(self, Z: ArrayLike, candidates: Any, classes: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn from samples and candidate sets.

        Parameters
        ----------
        Z : (n, d) array
        candidates : (n, q) mask or weights, or n collections of labels, mappings, strings or None
            See `mipl.candidates.parse_votes`; of weights, only whether they are positive counts. Fitted with labels,
            `predict` gives labels; fitted with a mask alone, class indices.
        classes : (q,) labels, default=None
            Names for the columns of a mask, or the full set of labels.
        sample_weight : (n,) float, default=None
            How often each sample counts, see `mipl.base.MIPLClassifier.fit`; None for once each. A method that cannot
            weight samples (`supports_sample_weight`) raises a `ParameterError`.
        """
        check_parameters(self)
        if sample_weight is not None and not self.supports_sample_weight:
            raise ParameterError(refusal_of_weights(self, "samples"))
        samples = _as_samples(Z)
        mask, weights, names = parse_votes(candidates, classes)
        if weights is not None:
            warn_sets_only(self.name or type(self).__name__)
        _check_one_each(len(mask), samples, "candidate sets")
        weight = check_sample_weight(sample_weight, len(samples), what="sample")
        counts, known = Supervision(mask, sample_weight=weight).counting()
        counted = samples if counts is None else samples[counts]
        self._warn_of_small_features(counted)
        if known.sample_weight is None:
            self._fit(counted, known.candidates)
        else:
            self._fit_weighted(counted, known.candidates, known.sample_weight)
        self.classes_ = names
        self.n_features_in_ = samples.shape[1]
        return self

    def predict_proba(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities (n, q) of samples (n, d); rows sum to one."""
        samples = self._check_samples(Z)
        return np.concatenate([self._predict_proba(samples[rows]) for rows in _blocks(samples)])

    def predict(self, Z: ArrayLike) -> NDArray[Any]:
        """The most probable label (n,) of each sample."""
        most_probable = np.argmax(self.predict_proba(Z), axis=1)
        predicted: NDArray[Any] = self.classes_[most_probable]
        return predicted

    def resolve(self, Z: ArrayLike, candidates: Any) -> NDArray[np.floating[Any]]:
        """Probabilities (n, q) of the true label of samples with candidate sets; zero off the candidates."""
        samples = self._check_samples(Z)
        mask = self._check_candidates(candidates, samples)
        return np.concatenate([self._resolve(samples[rows], mask[rows]) for rows in _blocks(samples)])

    def score(self, Z: ArrayLike, y: Any, sample_weight: Any = None) -> float:
        """Accuracy against true labels (n,), which are names or class indices.

        Given candidate sets instead (an (n, q) mask or collections of labels), as by a cross-validation that knows
        no true label, it is the share of samples whose predicted label is among their candidates. A `sample_weight`
        (n,) says how much each sample counts.
        """
        samples = self._check_samples(Z)
        predicted = np.argmax(self.predict_proba(samples), axis=1)
        if is_label_vector(y, self.classes_):
            truth = parse_labels(y, self.classes_)
            _check_one_each(len(truth), samples, "labels")
            if (truth < 0).any():
                raise DataError(f"sample {np.flatnonzero(truth < 0)[0]} has no true label; leave it out of the score")
            right = predicted == truth
        else:
            right = self._check_candidates(y, samples)[np.arange(len(samples)), predicted]
        return float(np.average(right, weights=check_sample_weight(sample_weight, len(samples), what="sample")))

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file; `mipl.load_model` reads it back without running any code from it."""
        return save_model(self, path)

    # ---------------------------------------------------------------- checks

    def _warn_of_small_features(self, samples: NDArray[np.float64]) -> None:
        spread = float(np.ptp(samples, axis=0).max())
        if self.penalises_weights and 0 < spread < _SMALL:
            warnings.warn(
                f"no feature varies by more than {spread:.1e}, which {self.name or type(self).__name__} takes for "
                "nothing: it penalises large weights of features; bring these to a scale near one first",
                stacklevel=5,
            )

    def _check_samples(self, Z: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self, "classes_")
        samples = _as_samples(Z)
        if samples.shape[1] != self.n_features_in_:
            raise DataError(f"the samples have {samples.shape[1]} features, fitted were {self.n_features_in_}")
        return samples

    def _check_candidates(self, candidates: Any, samples: NDArray[np.float64]) -> NDArray[np.bool_]:
        mask, _ = parse_candidates(candidates, self.classes_)
        _check_one_each(len(mask), samples, "candidate sets")
        return mask


def _blocks(samples: NDArray[np.float64]) -> list[slice]:
    return list(gen_batches(len(samples), _PREDICTION_BLOCK))


def _check_one_each(count: int, samples: NDArray[np.float64], what: str) -> None:
    if count != len(samples):
        raise DataError(f"{count} {what} for {len(samples)} samples; there must be one per sample")


def _as_samples(Z: ArrayLike) -> NDArray[np.float64]:
    array = as_array(Z, "the array of samples")
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise DataError(f"samples must be a 2-D numeric array (n, d) with n, d > 0, got {array.dtype} {array.shape}")
    array = np.array(array, dtype=np.float64, order="C")  # A copy: models keep samples, and callers reuse buffers.
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise DataError(f"sample {bad[0][0]}, feature {bad[0][1]} is not finite; replace missing values first")
    return array
