"""Features in [0, 1], whatever their scale."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

__all__ = ["UnitRange"]

#: Sizes whose differences and reciprocals are safe in single precision; beyond, double precision is used.
_SAFE = 2.0**100
#: How small usual values may be beside their distance from the smallest one before they lose too many of seven digits.
_FINE = 1e-4
_SAMPLE_ROWS = 1500


class UnitRange(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale each feature to [0, 1] by its smallest and largest training value.

    The values are those of scikit-learn's `MinMaxScaler`, to the last digit, but it leaves all features alone that
    vary by less than 1e-6 and overflows where a range does. Here a feature counts as constant, and is only shifted, if
    it varies by no more than the rounding of its values. Values far outside of the training range stay finite. Where
    nearly all values of a feature are near to each other, and far from the smallest one, zero is put among them: near
    zero single precision tells them apart.

    Attributes
    ----------
    scale_, shift_ : (d,)
        A feature x becomes x * scale + shift; in double precision where single precision would not do.

    Examples
    --------
    >>> UnitRange().fit_transform([[1e-30, 0.0], [3e-30, 7.0], [2e-30, 14.0]])
    array([[0. , 0. ],
           [1. , 0.5],
           [0.5, 1. ]], dtype=float32)
    """

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the range of each feature (n, d)."""
        rows = np.asarray(X, dtype=np.float32)
        low, high = rows.min(axis=0), rows.max(axis=0)
        largest = np.maximum(np.abs(low), np.abs(high))
        if largest.max() > _SAFE or (largest[largest > 0] < 1 / _SAFE).any():
            low, high = low.astype(np.float64), high.astype(np.float64)
        rounding = 10 * np.finfo(np.float32).eps * np.minimum(largest, 1)
        varies = high - low
        self.scale_ = 1 / np.where(varies > rounding, varies, varies.dtype.type(1))
        self.shift_ = -low * self.scale_
        middle, usual = _middle(rows[:: max(len(rows) // _SAMPLE_ROWS, 1)].astype(low.dtype))
        fine = usual * self.scale_ < _FINE * np.abs(middle * self.scale_ + self.shift_)
        self.shift_[fine] = -(middle * self.scale_)[fine]
        self.n_features_in_ = rows.shape[1]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Features (n, d) in units of the training range."""
        rows = np.asarray(X, dtype=np.float32)
        largest = np.finfo(np.float32).max
        with np.errstate(over="ignore"):
            scaled = rows * self.scale_
            scaled += self.shift_
        clipped: NDArray[np.float32] = np.clip(scaled, -largest, largest, out=scaled).astype(np.float32, copy=False)
        return clipped


def _middle(rows: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """The median of each feature (d,), and that of the distances of other values from it; infinity for none."""
    middle = np.median(rows, axis=0)
    with np.errstate(over="ignore"):
        distance = np.sort(np.abs(rows - middle), axis=0)
    equal = (distance == 0).sum(axis=0)
    padded = np.vstack([distance, np.full_like(distance[:1], np.inf)])
    usual = np.take_along_axis(padded, ((equal + len(rows)) // 2)[None], axis=0)[0]
    return middle, usual
