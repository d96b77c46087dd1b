"""Scaling of features that sees the training bags only."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset

__all__ = ["SCALINGS", "min_max", "z_scores"]


def min_max(train: MIPLDataset, *others: MIPLDataset) -> tuple[MIPLDataset, ...]:
    """Map every feature's range over the training bags to [0, 1], in the training set and in `others` alike.

    Test values may fall outside; a feature that is constant in training becomes 0 there. Meant for Birdsong and SIVAL,
    whose features have ranges that differ by orders of magnitude, and for methods that do not scale by themselves.

    Examples
    --------
    >>> from mipl.datasets import make_bags
    >>> train, test = min_max(*make_bags(seed=1).split(0.5))
    >>> float(train.bags.instances.min()), float(train.bags.instances.max())
    (0.0, 1.0)
    """
    low, high = train.bags.instances.min(axis=0), train.bags.instances.max(axis=0)
    return _mapped((train, *others), low, high - low)


def z_scores(train: MIPLDataset, *others: MIPLDataset) -> tuple[MIPLDataset, ...]:
    """Give every feature mean 0 and standard deviation 1 over the instances of training bags.

    `others` are mapped alike; a feature that is constant in training becomes 0 there.

    Examples
    --------
    >>> from mipl.datasets import make_bags
    >>> train, test = z_scores(*make_bags(seed=1).split(0.5))
    >>> bool(abs(train.bags.instances.std(axis=0) - 1).max() < 1e-5)
    True
    """
    X = train.bags.instances.astype(np.float64)
    mean, deviation = X.mean(axis=0).astype(np.float32), X.std(axis=0).astype(np.float32)
    return _mapped((train, *others), mean, deviation)


#: The names that suites use.
SCALINGS = {"min-max": min_max, "z-scores": z_scores}


def _mapped(
    parts: tuple[MIPLDataset, ...], shift: NDArray[np.float32], width: NDArray[np.float32]
) -> tuple[MIPLDataset, ...]:
    """Copies of data sets whose features (d,) are shifted and divided; a width of 0 counts as 1."""
    divisor = np.where(width > 0, width, 1)
    scaled = []
    for part in parts:
        copied = copy(part)
        copied.bags = Bags((part.bags.instances - shift) / divisor, part.bags.offsets, part.bags.instance_shape)
        scaled.append(copied)
    return tuple(scaled)
