"""PLLClassifier: the contract of partial-label learners on plain arrays."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from mipl.base import restrict_to_candidates
from mipl.candidates import parse_candidates
from mipl.errors import DataError

__all__ = ["PLLClassifier"]

#: Up to this many training samples one thread beats several: the matrices are small and the calls many.
_SINGLE_THREAD_SAMPLES = 2000
#: Samples that are predicted at once, which bounds the memory of kernel and neighbour blocks.
_PREDICTION_BLOCK = 2048


class PLLClassifier(ClassifierMixin, BaseEstimator):
    """Learn from n samples (n, d) with a candidate set each, one candidate being true.

    A method implements `_fit` and `_predict_proba`, and overrides `_resolve` where it knows better than to restrict
    its probabilities. They see a finite float64 array and a bool mask. Distances and penalties compare features as
    they are: bring these to a common scale first.

    Attributes
    ----------
    classes_ : (q,) labels
    n_features_in_ : int
    """

    citation: ClassVar[str] = ""

    @abstractmethod
    def _fit(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> None:
        """Learn from samples (n, d) and their candidate mask (n, q)."""

    @abstractmethod
    def _predict_proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class probabilities (n, q)."""

    def _resolve(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        """Probabilities (n, q) of the true label, zero off the candidates."""
        return restrict_to_candidates(self._predict_proba(Z), candidates)

    def fit(self, Z: ArrayLike, candidates: Any, classes: Any = None) -> Self:
        """Learn from samples `Z` (n, d) and candidate sets (a mask (n, q) or n collections of labels)."""
        samples = _as_samples(Z)
        mask, names = parse_candidates(candidates, classes)
        _check_one_each(mask, samples)
        self.classes_ = names
        self.n_features_in_ = samples.shape[1]
        with threadpool_limits(1 if len(samples) <= _SINGLE_THREAD_SAMPLES else None):
            self._fit(samples, mask)
        return self

    def predict_proba(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities (n, q); rows sum to one."""
        samples = self._check_samples(Z)
        with threadpool_limits(1):
            return np.concatenate([self._predict_proba(samples[rows]) for rows in _blocks(samples)])

    def predict(self, Z: ArrayLike) -> NDArray[Any]:
        """The most probable label (n,) of each sample."""
        return self.classes_[np.argmax(self.predict_proba(Z), axis=1)]

    def resolve(self, Z: ArrayLike, candidates: Any) -> NDArray[np.floating[Any]]:
        """Probabilities (n, q) of the true label among the candidates."""
        samples = self._check_samples(Z)
        mask, _ = parse_candidates(candidates, self.classes_)
        _check_one_each(mask, samples)
        with threadpool_limits(1):
            return np.concatenate([self._resolve(samples[rows], mask[rows]) for rows in _blocks(samples)])

    def _check_samples(self, Z: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self, "classes_")
        samples = _as_samples(Z)
        if samples.shape[1] != self.n_features_in_:
            raise DataError(f"the samples have {samples.shape[1]} features, fitted were {self.n_features_in_}")
        return samples


def _blocks(samples: NDArray[np.float64]) -> list[slice]:
    return list(gen_batches(len(samples), _PREDICTION_BLOCK))


def _check_one_each(mask: NDArray[np.bool_], samples: NDArray[np.float64]) -> None:
    if len(mask) != len(samples):
        raise DataError(f"{len(mask)} candidate sets for {len(samples)} samples; there must be one a sample")


def _as_samples(Z: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(Z)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise DataError(f"samples must be a 2-D numeric array (n, d) with n, d > 0, got {array.dtype} {array.shape}")
    array = np.array(array, dtype=np.float64, order="C")  # A copy: models keep samples, and callers reuse buffers.
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise DataError(f"sample {bad[0][0]}, feature {bad[0][1]} is not finite; replace missing values first")
    return array
