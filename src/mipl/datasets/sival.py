"""SIVAL-MIPL: photographs cut into segments."""

from __future__ import annotations

import numpy as np

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.datasets.sources import local_file, read_npz
from mipl.datasets.synthesis import from_bags

__all__ = ["build"]

NPZ_SHA256 = "dd0fd9d9131cad737d9d394f8f9a55cbdc308a99c4defe9b733605e8a35dbe2e"


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """1498 photographs of 31 or 32 segments (30 features) of 25 objects."""
    raw = read_npz(local_file("sival/sival.npz", NPZ_SHA256))
    bags = Bags.from_flat(raw["X"], raw["bag_id"])
    whole = np.flatnonzero(bags.sizes >= 31)
    return from_bags(
        bags[whole],
        raw["class_names"][raw["bag_label"][whole]],
        r,
        seed=seed,
        classes=raw["class_names"].tolist(),
        name="sival",
        description="SIVAL (Rahmani et al. 2005); features as published, unscaled.",
    )
