"""Min-max scaling that sees the training bags only."""

from __future__ import annotations

from copy import copy

import numpy as np

from mipl.bags import Bags
from mipl.dataset import MIPLDataset

__all__ = ["min_max"]


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
    width = np.where(high > low, high - low, 1)
    scaled = []
    for part in (train, *others):
        copied = copy(part)
        copied.bags = Bags((part.bags.instances - low) / width, part.bags.offsets, part.bags.instance_shape)
        scaled.append(copied)
    return tuple(scaled)
