"""Shards: consecutive bags whose features are computed, kept and summed over together.

Every statistic of the low-rank model is a sum over bags. A stage is written as functions of one shard (its
*statistics*) and a *solve* step that sees only their sums, so shards may lie in one process or in many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Shard", "cut", "total"]

#: Instances a shard holds; its working arrays (n_s, q) and its kernel block (n_s, M) are bounded by it.
SHARD_ROWS = 32_768

S = TypeVar("S")


@dataclass
class Shard:
    """The features of some consecutive bags.

    features : (n_s, R) float32
    offsets : (m_s + 1,) int64, the bags as segments of the rows
    candidates : (m_s, q) bool
    """

    features: Tensor
    offsets: Tensor
    candidates: Tensor

    @property
    def sizes(self) -> Tensor:
        """Instances of each bag (m_s,)."""
        return self.offsets.diff()


def cut(offsets: NDArray[np.int64], rows: int = SHARD_ROWS) -> list[slice]:
    """Cut bags into runs of about `rows` instances: slices of bags, in order."""
    run = np.maximum(offsets[1:] - 1, 0) // rows
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [len(run)]])
    return [slice(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def total(statistic: Callable[..., tuple[Tensor, ...]], shards: Sequence[S], *args: Any) -> tuple[Tensor, ...]:
    """Sum what `statistic(shard, *args)` gives for each shard, entry by entry."""
    return reduce(lambda a, b: tuple(map(add, a, b)), (statistic(shard, *args) for shard in shards))


def as_tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    """A tensor on `device`; read-only arrays are copied, as torch cannot promise not to write."""
    return torch.tensor(array, device=device)
