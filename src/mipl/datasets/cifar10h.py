"""CIFAR-10H: photographs with the votes of about fifty people each, cut into overlapping patches."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.datasets.sources.files import read_npz, required_file
from mipl.datasets.synthesis.randomness import shuffled
from mipl.errors import DataError

__all__ = ["build", "cut_patches"]

_SHA256 = "5707319185bb72d3870e116753e360eb2f6fa99654b981334b577b5f8a33f2c7"
_SIDE = 32  # pixels of a photograph


def build(
    *, n_bags: int | None = None, min_votes: int = 1, patch: int = 16, stride: int = 8, seed: int = 0
) -> MIPLDataset:
    """10,000 photographs of ten kinds with the votes of about fifty people each, in overlapping patches.

    A bag is a photograph of the CIFAR-10 test set, its instances are square patches, row by row, in colour, divided by
    255. The candidates are the labels that people gave, with their numbers of votes as `candidate_weights`; the true
    label is for evaluation. It is kept where nobody voted for it (four photographs with the defaults), see
    `MIPLDataset.labels_outside`. Bag ids are the numbers in the test set, from 0.

    Parameters
    ----------
    n_bags : int, default=None
        How many photographs, drawn at random; None takes all 10,000. Fewer are a part of more with the same seed.
    min_votes : int, default=1
        How many votes make a label a candidate; labels with fewer lose these. At most 13, the largest number for which
        every photograph has a candidate.
    patch : int, default=16
        Side of a patch in pixels, at most 32.
    stride : int, default=8
        Pixels from one patch to the next; it must divide 32 - patch, so that the patches reach the border. The defaults
        give nine patches per photograph.
    seed : int, default=0
        Which photographs are drawn; the same seed gives the same ones everywhere.
    """
    raw = read_npz(required_file("cifar10h/cifar10h.npz", _SHA256))
    images, votes, truth = raw["images"], raw["votes"].astype(np.float64), raw["labels"].astype(np.int64)
    total = len(images)
    if n_bags is not None and not 1 <= n_bags <= total:
        raise DataError(f"n_bags={n_bags}; there are 1 to {total} photographs to draw")
    largest = int(votes.max(axis=1).min())
    if not 1 <= min_votes <= largest:
        raise DataError(f"min_votes={min_votes}; it must be 1 to {largest}, so that every photograph has a candidate")
    drawn = np.sort(shuffled(seed, "photographs", np.arange(total))[:n_bags])
    votes = np.where(votes >= min_votes, votes, 0)[drawn]
    missing = int((votes[np.arange(len(drawn)), truth[drawn]] == 0).sum())
    instances, per_bag = cut_patches(images[drawn], patch, stride)
    return MIPLDataset(
        bags=Bags(instances, np.arange(len(drawn) + 1) * per_bag, (patch, patch, 3)),
        candidates=votes > 0,
        candidate_weights=votes,
        labels=truth[drawn],
        classes=raw["classes"].tolist(),
        bag_ids=drawn,
        name="cifar10h",
        description=(
            "CIFAR-10H (Peterson, Battleday, Griffiths, Russakovsky 2019): people's votes on the CIFAR-10 test set "
            f"(Krizhevsky 2009); patches of {patch} x {patch} pixels every {stride}, divided by 255. The true label is "
            f"not among the candidates of {missing} bags."
        ),
    )


def cut_patches(images: NDArray[np.uint8], patch: int, stride: int) -> tuple[NDArray[np.float32], int]:
    """Cut images (m, 32, 32, 3) into patches (m * k, patch * patch * 3) in [0, 1], k of them per image."""
    if not 1 <= patch <= _SIDE or stride < 1 or (_SIDE - patch) % stride:
        raise DataError(
            f"patch={patch}, stride={stride}; a patch has 1 to {_SIDE} pixels, and the stride divides what it leaves "
            f"of {_SIDE}"
        )
    windows = sliding_window_view(images, (patch, patch), axis=(1, 2))[:, ::stride, ::stride]
    rows = np.moveaxis(windows, 3, 5).reshape(-1, patch * patch * images.shape[3])
    return np.divide(rows, 255, dtype=np.float32), windows.shape[1] * windows.shape[2]
