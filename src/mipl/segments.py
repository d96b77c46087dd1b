"""Reductions over segments of a flat array: what becomes of per-instance values in each bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.errors import DataError

__all__ = ["Segments"]


class Segments:
    """m runs of n rows, the run i from ``offsets[i]`` to ``offsets[i + 1]``; none is empty.

    `Bags` extends it: a run is a bag, a row an instance.
    """

    __slots__ = ()

    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of instances of each bag (m,)."""
        return np.diff(self.offsets)

    def sum(self, values: ArrayLike) -> NDArray[Any]:
        """Sum per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.add.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def max(self, values: ArrayLike) -> NDArray[Any]:
        """Take the maximum of per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.maximum.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def min(self, values: ArrayLike) -> NDArray[Any]:
        """Take the minimum of per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.minimum.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def mean(self, values: ArrayLike) -> NDArray[Any]:
        """Average per-instance `values` (n, ...) over each bag, to (m, ...)."""
        total = self.sum(values)
        if not np.issubdtype(total.dtype, np.inexact):
            total = total.astype(np.float64)
        means: NDArray[Any] = total / self.sizes.astype(total.dtype).reshape((-1,) + (1,) * (total.ndim - 1))
        return means

    def logsumexp(self, values: ArrayLike) -> NDArray[Any]:
        """``log sum exp`` of per-instance `values` (n, ...) over each bag, without overflow."""
        values = self._per_instance(values)
        top = self.max(values)
        shift = np.where(np.isfinite(top), top, 0)
        with np.errstate(divide="ignore"):
            found: NDArray[Any] = np.log(self.sum(np.exp(values - self.spread(shift)))) + shift
            return found

    def spread(self, values: ArrayLike) -> NDArray[Any]:
        """Repeat per-bag `values` (m, ...) for every instance of the bag, to (n, ...)."""
        array = np.asarray(values)
        if len(array) != len(self):
            raise DataError(f"expected one value per bag ({len(self)}), got {len(array)}")
        return np.repeat(array, self.sizes, axis=0)

    def _per_instance(self, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != self.offsets[-1]:
            raise DataError(f"expected one value per instance ({self.offsets[-1]}), got shape {array.shape}")
        return array
