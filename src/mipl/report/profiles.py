"""Feature vectors as small profiles, to be drawn against the typical profile of a class."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.plotting.profiles import ProfileScale

__all__ = ["Profiles"]

_NAMED = 3  # features that are told by name and value


class Profiles:
    """Instances (n, d) as points from 0 to 255, on the scale of `mipl.plotting.profiles.ProfileScale`.

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
        self._scale = ProfileScale(bags)
        self._typical = self._bytes(typical)

    def sheet(self, rows: NDArray[np.int64], label: NDArray[np.int64], second: NDArray[np.int64]) -> dict[str, Any]:
        """The points of the instances `rows` (k,), and their most unusual features by name where these have names."""
        values = self._bags.instances[rows]
        told: list[list[list[Any]]] = []
        if self._bags.feature_names is not None:
            unusual = np.abs(values - self._scale.mean) / np.maximum(self._scale.spread, 1e-12)
            top = np.argsort(-unusual, axis=1, kind="stable")[:, :_NAMED]
            told = [[[int(j), f"{row[j]:.3g}"] for j in js] for row, js in zip(values, top, strict=True)]
        return {"points": self._bytes(values), "told": told}

    def legend(self) -> dict[str, Any]:
        """Points of a profile, the typical ones, where zero lies (from 0 to 255), and the names of the features."""
        return {
            "points": self._scale.n_points,
            "typical": self._typical,
            "zero": 255 * self._scale.zero,
            "features": list(self._bags.feature_names or []),
            "standardised": self._scale.standardised,
            "averaged": self._scale.n_points < self._bags.n_features,
        }

    def _bytes(self, values: NDArray[Any]) -> str:
        return base64.b64encode(np.rint(255 * self._scale.heights(values)).astype(np.uint8).tobytes()).decode()
