"""Every method of the registry with parameters that make it quick on a small problem."""

from __future__ import annotations

from typing import Any

import numpy as np

import mipl
from mipl.bags import Bags
from mipl.base import MIPLClassifier

_DEEP = {"max_epochs": 3, "hidden_sizes": (8,)}
_MIPLGP = {"max_iter": 5, "n_samples": 32}
_QUICK: dict[str, dict[str, Any]] = {
    "BagGP": {"n_landmarks": 40, "rank": 30, "cross_fit": 2},
    "MIVAE": {"max_epochs": 2, "hidden_dim": 8, "latent_dim": 2},
    **dict.fromkeys(("MIPLGP", "MIPLGP-uniform", "MIPLGP-naive"), _MIPLGP),
    **dict.fromkeys(("DEMIPL", "ELIMIPL", "MIPLMA", "ProMIPL", "FastMIPL"), _DEEP),
}


def quick(name: str) -> MIPLClassifier:
    """The method of that name, not fitted."""
    return mipl.make(name, **_QUICK.get(name, {}))


def at_scale(bags: Bags, scale: float, shape: tuple[int, ...] | None = None) -> Bags:
    """The same bags with a largest value of `scale` in size; half of the features with the other sign."""
    X = bags.instances.astype(np.float64)
    X = X / np.abs(X).max() * scale * np.where(np.arange(X.shape[1]) % 2, -1, 1)
    return Bags(X.astype(np.float32), bags.offsets, shape or bags.instance_shape, bags.feature_names)
