"""Birdsong-MIPL: bags of syllables cut from forest recordings."""

from __future__ import annotations

import numpy as np

from mipl.dataset import MIPLDataset
from mipl.datasets.sources import local_file, read_npz
from mipl.datasets.synthesis import from_instances

__all__ = ["build"]

NPZ_SHA256 = "a5f2b9d5250e9a736cd67dc54ca1a3b0a28d96af409bab3f59b85268fd0dab1a"


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """1300 bags of 25 to 76 syllables (38 features), 8.3 % of them positive."""
    raw = read_npz(local_file("birdsong/birdsong.npz", NPZ_SHA256))
    names = np.array([*(name.split(" - ")[1] for name in raw["class_names"]), "unlabelled"])
    return from_instances(
        raw["X"],
        names[raw["instance_label"]],
        targets=names[:-1].tolist(),
        reserved=["unlabelled"],
        n_bags=1300,
        sizes=(25, 76),
        mean_size=48425 / 1300,
        positive=0.083,
        r=r,
        seed=seed,
        name="birdsong",
        description="HJA Birdsong (Briggs et al. 2012); features as published, unscaled.",
    )
