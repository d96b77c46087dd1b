"""Birdsong as it was recorded: a bag is a recording, its candidates are the species that were noted for it."""

from __future__ import annotations

import numpy as np

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.datasets.birdsong import NPZ_SHA256, SPECIES
from mipl.datasets.sources.files import read_npz, required_file
from mipl.errors import DataError

__all__ = ["build"]


def build(*, min_species: int = 1, max_species: int | None = None) -> MIPLDataset:
    """548 forest recordings of 2 to 43 bird syllables (38 features), with the 1 to 5 species noted for each.

    Nothing is drawn: the ambiguity is the recordings' own. All noted species sing in a recording, so there is no
    single true label where several are noted, and `labels` is None there; what can be evaluated is which
    syllable is of which species, by `instance_labels`: the class index, or -1 for the 5,234 syllables (about half) that
    were not labelled. For 67 pairs of a recording and a species noted no syllable is labelled so.

    Features are left as published, see ``mipl.load("birdsong")``. Bag ids are the numbers of the recordings, from 0.

    Parameters
    ----------
    min_species : int, default=1
        Leave out recordings with fewer species noted; 2 leaves the 362 ambiguous ones.
    max_species : int, default=None
        Leave out recordings with more species noted; None for no limit.
    """
    raw = read_npz(required_file("birdsong/birdsong.npz", NPZ_SHA256))
    noted = raw["bag_labels"].astype(bool)
    counts = noted.sum(axis=1)
    kept = np.flatnonzero((counts >= min_species) & (counts <= (counts.max() if max_species is None else max_species)))
    if min_species < 1 or not len(kept):
        raise DataError(
            f"min_species={min_species}, max_species={max_species}: no recording is left; they have 1 to {counts.max()}"
        )
    return MIPLDataset(
        bags=Bags.from_flat(raw["X"], raw["bag_id"]),
        candidates=noted,
        labels=np.where(counts == 1, noted.argmax(axis=1), -1),
        classes=SPECIES,
        instance_labels=raw["instance_label"].astype(np.int64),
        name="birdsong-natural",
        description=(
            "HJA Birdsong (Briggs, Fern, Raich 2012), recordings with the species noted for them; features as "
            "published, unscaled."
        ),
    )[kept]
