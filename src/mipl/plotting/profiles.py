"""Feature vectors as profiles: few points on one scale, so that instances can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["ProfileScale"]

_POINTS = 48  # points of a profile; neighbouring features are averaged where there are more
_SAMPLE = 20_000  # instances by which scales are judged
_UNEQUAL = 20.0  # ratio of the largest to the smallest scale from which each feature has its own


class ProfileScale:
    """How instances (n, d) become profiles.

    Features of very different scales are measured in their own standard deviations; others stay as they are, so that a
    spectrum keeps its shape.

    Parameters
    ----------
    bags : Bags
        By their instances the scale is judged.
    """

    def __init__(self, bags: Bags) -> None:
        step = max(1, bags.n_instances // _SAMPLE)
        sample = bags.instances[::step].astype(np.float64)
        self.mean, self.spread = sample.mean(axis=0), sample.std(axis=0)
        varied = self.spread[self.spread > 0]
        self.standardised = len(varied) > 0 and float(varied.max() / varied.min()) > _UNEQUAL
        d = bags.n_features
        self._edges = np.unique(np.linspace(0, d, min(d, _POINTS) + 1).astype(int))[:-1]
        self.n_points = len(self._edges)
        self._low, self._high = np.percentile(self._points(sample), [0.5, 99.5])

    def heights(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Instances (k, d) as points (k, p) from 0, the bottom of the scale, to 1, its top."""
        return self._scaled(self._points(values))

    @property
    def zero(self) -> float:
        """The height of zero, or of the mean where features have scales of their own."""
        return float(self._scaled(np.zeros(1))[0])

    def _points(self, values: NDArray[Any]) -> NDArray[np.float64]:
        if self.standardised:
            values = (values - self.mean) / np.where(self.spread > 0, self.spread, 1)
        counts = np.diff([*self._edges, values.shape[1]])
        return np.add.reduceat(values, self._edges, axis=1, dtype=np.float64) / counts

    def _scaled(self, points: NDArray[Any]) -> NDArray[np.float64]:
        scaled: NDArray[np.float64] = np.clip((points - self._low) / max(self._high - self._low, 1e-12), 0, 1)
        return scaled
