"""Standardizer: features of mean zero and unit scale, learned from all instances of the training bags."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mipl.bags import Bags

__all__ = ["Standardizer"]


class Standardizer(BaseEstimator):
    """Subtract the mean of each feature and divide by its standard deviation.

    The pixels of an image share one unit, so instances with an image shape are divided by one common scale; a pixel
    that is almost always blank would otherwise outweigh all others. Constant features become zero.

    Attributes
    ----------
    mean_ : (d,) float32
    scale_ : (d,) float32
    """

    def fit(self, bags: Bags, groups: NDArray[np.bool_]) -> Self:
        """Learn mean and scale from the instances of m bags; the groups (m, g) make no difference."""
        variance = bags.instances.var(axis=0, dtype=np.float64)
        if len(bags.instance_shape) > 1:
            variance[:] = variance.mean()
        self.mean_ = bags.instances.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.scale_ = np.where(variance > 0, np.sqrt(variance), 1).astype(np.float32)
        return self

    def transform(self, bags: Bags) -> NDArray[np.float32]:
        """The standardized instances (n, d)."""
        return (bags.instances - self.mean_) / self.scale_
