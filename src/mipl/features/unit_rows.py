"""Rows of unit length, for counts and TF-IDF."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

__all__ = ["UnitRows"]

#: Largest entries of a row from whose squares single precision computes a length.
_SAFE = (2.0**-40, 2.0**40)


class UnitRows(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Divide each row by its Euclidean length, so that a long document looks like a short one; zero rows stay zero.

    Parameters
    ----------
    power : float, default=1.0
        The size of each entry is raised to this power before. Below one, the many rarer words of a document count for
        more beside the one or two that outweigh them.

    Examples
    --------
    >>> UnitRows(power=0.5).fit_transform([[9.0, 16.0]])
    array([[0.6, 0.8]], dtype=float32)
    """

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Nothing is learnt but the number of features."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Rows (n, d) of length one."""
        rows = _near_one(np.asarray(X, dtype=np.float32))
        if self.power != 1:
            rows = np.sign(rows) * np.power(np.abs(rows), np.float32(self.power))
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        length[length == 0] = 1
        units: NDArray[np.float32] = np.divide(rows, length, dtype=np.float32)
        return units


def _near_one(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same rows, but those of very large or very small entries divided by a power of two of their own."""
    largest = np.maximum(np.abs(rows.max(axis=1)), np.abs(rows.min(axis=1)))
    unusual = (largest > 0) & ((largest < _SAFE[0]) | (largest > _SAFE[1]))
    if not unusual.any():
        return rows
    rows = rows.copy()
    with np.errstate(under="ignore"):
        rows[unusual] = np.ldexp(rows[unusual], -np.frexp(largest[unusual])[1][:, None])
    return rows
