"""Features multiplied by a matrix, whose digits do not depend on how many rows are multiplied at a time."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from torch import Tensor

from mipl.compute import limit_torch

__all__ = ["LinearMap", "steady_product"]

#: Products with fewer rows are computed in another way, with other last digits.
_FEWEST_ROWS = 16
#: Features are cut off at this size: no kernel reaches as far, and no sum of theirs overflows.
_FAR = np.float32(1e15)


def steady_product(rows: NDArray[np.float32], axes: Tensor) -> Tensor:
    """Rows (n, d) @ axes (d, k) by torch and one thread.

    NumPy's product gives a row other last digits as the number of rows beside it changes, and wakes threads that a
    single bag has no work for.
    """
    n = len(rows)
    if n < _FEWEST_ROWS:
        rows = rows[np.arange(_FEWEST_ROWS) % n]
    with limit_torch(one_thread=True):
        return (torch.tensor(rows) @ axes)[:n]


class LinearMap(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Multiply features (n, d) by a matrix, such as the metric that `mipl.BagGP` learns (`mipl.baggp.metric`).

    Parameters
    ----------
    matrix : (d, k) array

    Examples
    --------
    >>> LinearMap(np.array([[2.0], [1.0]])).fit_transform([[1.0, 3.0]])
    array([[5.]], dtype=float32)
    """

    def __init__(self, matrix: NDArray[np.float32]) -> None:
        self.matrix = matrix

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Nothing is learnt but the number of features."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Features (n, k) of rows (n, d)."""
        rows = np.clip(np.asarray(X, dtype=np.float32), -_FAR, _FAR)
        return steady_product(rows, torch.tensor(self.matrix, dtype=torch.float32)).numpy()
