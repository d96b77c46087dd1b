"""Principal components whose digits do not depend on how many rows are projected at a time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from mipl.compute import limit_torch

__all__ = ["Projection"]

#: Products with fewer rows are computed in another way, with other last digits.
_FEWEST_ROWS = 16


class Projection(PCA):  # type: ignore[misc]
    """scikit-learn's `PCA`, projecting new rows by torch and one thread.

    NumPy's product gives a row other last digits as the number of rows beside it changes, and wakes threads that a
    single bag has no work for.
    """

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Coordinates (n, k) of rows (n, d) along the components."""
        rows = np.asarray(X, dtype=np.float32)
        n = len(rows)
        if n < _FEWEST_ROWS:
            rows = rows[np.arange(_FEWEST_ROWS) % n]
        with limit_torch(one_thread=True):
            axes = torch.tensor(self.components_.T, dtype=torch.float32)
            moved = torch.tensor(self.mean_, dtype=torch.float32) @ axes
            return ((torch.tensor(rows) @ axes) - moved)[:n].numpy()
