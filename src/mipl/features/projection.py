"""Principal components whose digits do not depend on how many rows are projected at a time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from mipl.features.linear_map import steady_product

__all__ = ["Projection"]


class Projection(PCA):  # type: ignore[misc]
    """scikit-learn's `PCA`, projecting new rows as `mipl.features.linear_map` does."""

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Coordinates (n, k) of rows (n, d) along the components."""
        axes = torch.tensor(self.components_.T, dtype=torch.float32)
        moved = torch.tensor(self.mean_, dtype=torch.float32) @ axes
        return (steady_product(np.asarray(X, dtype=np.float32), axes) - moved).numpy()
