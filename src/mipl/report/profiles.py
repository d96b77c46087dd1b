"""Feature vectors as small profiles, to be drawn against the typical profile of a class."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["Profiles"]

_POINTS = 48  # points of a profile; neighbouring features are averaged where there are more
_NAMED = 3  # features that are told by name and value
_SAMPLE = 20_000  # instances by which scales are judged
_UNEQUAL = 20.0  # ratio of the largest to the smallest scale from which each feature has its own


class Profiles:
    """Instances (n, d) as points from 0 to 255.

    Features of very different scales are measured in their own standard deviations; others stay as they are, so that a
    spectrum keeps its shape.

    Parameters
    ----------
    bags : Bags
        Their instances are the profiles.
    typical : (q, d)
        The typical instance of each class.
    """

    kind = "profile"

    def __init__(self, bags: Bags, typical: NDArray[Any]) -> None:
        self._bags = bags
        step = max(1, bags.n_instances // _SAMPLE)
        sample = bags.instances[::step].astype(np.float64)
        self._mean, self._spread = sample.mean(axis=0), sample.std(axis=0)
        varied = self._spread[self._spread > 0]
        self._standardised = len(varied) > 0 and float(varied.max() / varied.min()) > _UNEQUAL
        d = bags.n_features
        self._edges = np.unique(np.linspace(0, d, min(d, _POINTS) + 1).astype(int))[:-1]
        shown = self._points(sample)
        self._low, self._high = np.percentile(shown, [0.5, 99.5])
        self._typical = self._bytes(typical)

    def sheet(self, rows: NDArray[np.int64], label: NDArray[np.int64], second: NDArray[np.int64]) -> dict[str, Any]:
        """The points of the instances `rows` (k,), and their most unusual features by name where these have names."""
        values = self._bags.instances[rows]
        told: list[list[list[Any]]] = []
        if self._bags.feature_names is not None:
            unusual = np.abs(values - self._mean) / np.maximum(self._spread, 1e-12)
            top = np.argsort(-unusual, axis=1, kind="stable")[:, :_NAMED]
            told = [[[int(j), f"{row[j]:.3g}"] for j in js] for row, js in zip(values, top, strict=True)]
        return {"points": self._bytes(values), "told": told}

    def legend(self) -> dict[str, Any]:
        """Points of a profile, the typical ones, where zero lies (from 0 to 255), and the names of the features."""
        return {
            "points": len(self._edges),
            "typical": self._typical,
            "zero": float(self._scaled(np.zeros(1))[0]),
            "features": list(self._bags.feature_names or []),
            "standardised": self._standardised,
            "averaged": len(self._edges) < self._bags.n_features,
        }

    def _points(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Values (k, d) as points (k, p), before they are scaled."""
        if self._standardised:
            values = (values - self._mean) / np.where(self._spread > 0, self._spread, 1)
        counts = np.diff([*self._edges, values.shape[1]])
        return np.add.reduceat(values, self._edges, axis=1, dtype=np.float64) / counts

    def _scaled(self, points: NDArray[Any]) -> NDArray[np.float64]:
        return np.clip(255 * (points - self._low) / max(self._high - self._low, 1e-12), 0, 255)

    def _bytes(self, values: NDArray[Any]) -> str:
        return base64.b64encode(np.rint(self._scaled(self._points(values))).astype(np.uint8).tobytes()).decode()
