"""Shards: consecutive bags whose features are computed, kept and summed over together.

Every statistic of the low-rank model is a sum over bags. A stage is written as functions of one shard (its
*statistics*) and a *solve* step that sees only their sums, so shards may lie in one process or in many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BLOCK_ROWS", "SHARD_ROWS", "Shard", "cut", "thin_product", "total"]

#: Instances a shard holds; its working arrays (n_s, q) and its kernel block (n_s, M) are bounded by it.
SHARD_ROWS = 32_768
#: Rows at a time where a shard's features are gone through.
BLOCK_ROWS = 2048

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

    def split(self, n_bags: int) -> tuple[Shard, Shard]:
        """The first `n_bags` bags and the rest, as views."""
        row = int(self.offsets[n_bags])
        return (
            Shard(self.features[:row], self.offsets[: n_bags + 1], self.candidates[:n_bags]),
            Shard(self.features[row:], self.offsets[n_bags:] - row, self.candidates[n_bags:]),
        )


def cut(offsets: NDArray[np.int64], rows: int = SHARD_ROWS) -> list[slice]:
    """Cut bags into runs of about `rows` instances: slices of bags, in order."""
    run = np.maximum(offsets[1:] - 1, 0) // rows
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [len(run)]])
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def total(statistic: Callable[..., tuple[Tensor, ...]], shards: Sequence[S], *args: Any) -> tuple[Tensor, ...]:
    """Sum what `statistic(shard, *args)` gives for each shard, entry by entry."""
    return reduce(lambda a, b: tuple(map(add, a, b)), (statistic(shard, *args) for shard in shards))


def thin_product(features: Tensor, weights: Tensor) -> Tensor:
    """Multiply features (n, R) by weights (R, k), k small; BLAS takes half the time on transposed blocks."""
    left = weights.T.contiguous()
    return torch.cat([(left @ block.T).T for block in features.split(BLOCK_ROWS)])
