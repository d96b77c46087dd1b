"""Birdsong-MIPL: bags of syllables cut from forest recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.datasets.sources.files import RemoteFile, check_arrays, download, github, local_file, read_npz
from mipl.datasets.synthesis.build import from_instances
from mipl.datasets.synthesis.grouping import group_sources
from mipl.errors import DataError

__all__ = ["build"]

SPECIES = (
    "Brown Creeper",
    "Winter Wren",
    "Pacific-slope Flycatcher",
    "Red-breasted Nuthatch",
    "Dark-eyed Junco",
    "Olive-sided Flycatcher",
    "Hermit Thrush",
    "Chestnut-backed Chickadee",
    "Varied Thrush",
    "Hermit Warbler",
    "Swainson's Thrush",
    "Hammond's Flycatcher",
    "Western Tanager",
)

NPZ_SHA256 = "a5f2b9d5250e9a736cd67dc54ca1a3b0a28d96af409bab3f59b85268fd0dab1a"
_CONTENT_SHA256 = "5ac6b35f1e892a4066b97c09c3dd23aabc1d944d082dc69ee0b9c5907f866f0d"
_FILES = {
    "hja_birdsong_features.txt": "6cd7374a9bd76468b099a3a5e3891e8461ad84a4dfea2c744c0089b73c16d193",
    "hja_birdsong_instance_labels.txt": "89203119824f4fd0480b8bc705ef1941c7088fb8bceac74bd9b3e39c88cbe0b6",
}
_REPOSITORY = ("ngonthier/Icono_Art_Analysis", "2fc91e6b1062b8fe554c129d9478268c551cf8f9")
_FOLDER = "Classif_Paintings/MILbenchmark/Dataset/Birds"


def build(*, r: int = 1, seed: int = 0, groups: int | None = None) -> MIPLDataset:
    """1300 bags of 25 to 76 bird syllables (38 features), 8.3 % of them positive.

    The classes are the 13 species; the negatives are the 5,234 unlabelled syllables of the 548 recordings.

    The source is small: 4,998 labelled syllables, 32 of them of the Hermit Thrush. As in the paper, bags share
    syllables: each one is used about nine times if unlabelled, up to ten times if of a rare species, and a random
    split has most test syllables in training bags as well. ``groups`` prevents that.

    Features are left as published. Their ranges differ by eight orders of magnitude, so a method that does not scale
    by itself needs `mipl.datasets.min_max` on the training bags; scaling the source here would let test bags in.

    Parameters
    ----------
    r : int, default=1
        False positive labels a bag, 0 to 12.
    seed : int, default=0
        The same seed gives the same bags everywhere.
    groups : int, default=None
        Deal the recordings out to this many groups, every bag from one of them; `MIPLDataset.split` then gives whole
        groups to either side, so that training and test bags have no recording in common. 2 suits splits in half, 10
        suits 70/30. At most 14, the number of recordings with a Hermit Thrush.
    """
    X, recording, species = _load()
    names = np.array([*SPECIES, "unlabelled"])
    if groups is not None and not 2 <= groups <= 14:
        raise DataError(f"groups={groups}; it must be 2 to 14, because 14 recordings have a Hermit Thrush")
    return from_instances(
        X,
        names[species],
        targets=SPECIES,
        reserved=["unlabelled"],
        n_bags=1300,
        sizes=(25, 76),
        mean_size=48425 / 1300,
        positive=0.083,
        r=r,
        seed=seed,
        groups=None if groups is None else group_sources(recording, species % len(names), groups, seed),
        name="birdsong",
        description="HJA Birdsong (Briggs, Fern, Raich 2012), 13 species; features as published, unscaled.",
    )


def _load() -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Features (10232, 38), the recording of each syllable, and its species, -1 where unlabelled."""
    local = local_file("birdsong/birdsong.npz", NPZ_SHA256)
    if local is not None:
        raw = read_npz(local)
        return raw["X"], raw["bag_id"].astype(np.int64), raw["instance_label"].astype(np.int64)
    files = [
        RemoteFile(f"birdsong/{name}", sha256, github(*_REPOSITORY, f"{_FOLDER}/{name}"))
        for name, sha256 in _FILES.items()
    ]
    features, labels = (np.loadtxt(path, delimiter=",", skiprows=1) for path in download(files))
    # Both files name the recording first, counted from 1; the species counts from 1 as well, 0 for none.
    X, recording, species = features[:, 1:].astype(np.float32), features[:, 0] - 1, labels[:, 1] - 1
    check_arrays("birdsong", _CONTENT_SHA256, X, recording.astype(np.int32), species.astype(np.int8))
    return X, recording.astype(np.int64), species.astype(np.int64)
