"""Standardizer: features of mean zero and unit scale, learned from all instances of the training bags."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mipl.bags import Bags

__all__ = ["Standardizer"]

#: Means and scales with which single precision computes safely.
_SAFE = 2.0**100
#: Where standardized features are cut off: no kernel reaches as far, and their squares are still numbers.
_FAR = np.float32(1e15)


class Standardizer(BaseEstimator):  # type: ignore[misc]
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
        deviation = np.sqrt(variance).astype(np.float32)
        self.scale_ = np.where(deviation > 0, deviation, np.float32(1))
        return self

    def transform(self, bags: Bags) -> NDArray[np.float32]:
        """The standardized instances (n, d); those far from all training instances are cut off at 1e15 deviations."""
        sizes = np.concatenate([np.abs(self.mean_), self.scale_])
        precise = sizes.max() > _SAFE or self.scale_.min() < 1 / _SAFE
        instances = bags.instances.astype(np.float64) if precise else bags.instances
        with np.errstate(over="ignore"):
            standardized = (instances - self.mean_) / self.scale_
        clipped: NDArray[np.float32] = np.clip(standardized, -_FAR, _FAR, out=standardized).astype(
            np.float32, copy=False
        )
        return clipped
