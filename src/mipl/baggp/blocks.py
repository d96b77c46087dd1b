"""Blocks: consecutive bags whose features are computed, kept and summed over together.

Everything that BagGP learns is a sum over bags. A step is written as *statistics*, pure functions of one block and the
present parameters, and a *solve* that sees only their sums, taken in the order of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.constants import BLOCK_INSTANCES, CHUNK_ROWS

__all__ = [
    "Block",
    "bag_weights",
    "cut",
    "mean_and_error",
    "thin_product",
    "total",
    "weigh",
    "weighted_mean",
    "with_log_prior",
]


@dataclass(frozen=True)
class Block:
    """The features of some consecutive bags.

    Attributes
    ----------
    features : (n_b, R) float32
    offsets : (m_b + 1,) int64, the bags as segments of the rows
    log_prior : (m_b, q) float64
        What is known of each bag's label: zero for a candidate, -inf for a label that is none.
    weight : (m_b,) float64 or None
        How often each bag counts; None for once.
    """

    features: Tensor
    offsets: Tensor
    log_prior: Tensor
    weight: Tensor | None = None

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""
        return len(self.log_prior)

    @property
    def candidates(self) -> Tensor:
        """Which labels (m_b, q) are possible."""
        return self.log_prior > -torch.inf

    @property
    def sizes(self) -> Tensor:
        """Instances per bag (m_b,)."""
        return self.offsets.diff()

    @property
    def row_weight(self) -> Tensor | None:
        """How often each instance counts (n_b,), None for once."""
        return None if self.weight is None else torch.repeat_interleave(self.weight, self.sizes)

    def select(self, bags: Tensor) -> Block:
        """The bags of a mask (m_b,), copied."""
        rows = torch.repeat_interleave(bags, self.sizes)
        offsets = torch.cat([self.offsets.new_zeros(1), self.sizes[bags].cumsum(0)])
        weight = None if self.weight is None else self.weight[bags]
        return Block(self.features[rows], offsets, self.log_prior[bags], weight)


def with_log_prior(blocks: Sequence[Block], log_prior: NDArray[np.float64]) -> list[Block]:
    """The same blocks with other knowledge (m, q) of the labels."""
    parts = torch.tensor(log_prior, device=blocks[0].features.device).split([block.n_bags for block in blocks])
    return [replace(block, log_prior=part) for block, part in zip(blocks, parts, strict=True)]


def cut(offsets: NDArray[np.int64], instances: int = BLOCK_INSTANCES) -> list[slice]:
    """Cut bags into runs of about that many instances: slices of bags, in order."""
    run = np.maximum(offsets[1:] - 1, 0) // instances
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [len(run)]])
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def total(statistics: Iterable[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Sum the statistics of all blocks entry by entry, in the order given."""
    return reduce(lambda a, b: tuple(map(add, a, b)), statistics)


def bag_weights(blocks: Sequence[Block]) -> Tensor | None:
    """The weights (m,) of the bags of all blocks, None where they have none."""
    parts = [block.weight for block in blocks if block.weight is not None]
    return torch.cat(parts) if parts else None


def weigh(values: Tensor, weight: Tensor | None) -> Tensor:
    """Values (n,) or (n, k) times the weights (n,) of their rows; None leaves them as they are."""
    if weight is None:
        return values
    weight = weight.to(values.dtype)
    return values * (weight if values.ndim == 1 else weight[:, None])


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """The mean over rows of values (n,) or (n, k), each counted by its weight (n,)."""
    return values.mean(dim=0) if weight is None else weigh(values, weight).sum(dim=0) / weight.sum()


def mean_and_error(values: Tensor, weight: Tensor | None) -> tuple[float, float]:
    """The mean of values (m,), each counted by its weight (m,), and its standard error."""
    if weight is None:
        return float(values.mean()), float(values.std(correction=0)) / math.sqrt(len(values))
    mean = weighted_mean(values, weight)
    variance = float(weighted_mean((values - mean).square(), weight))
    return float(mean), math.sqrt(variance / float(weight.sum()))


def thin_product(features: Tensor, weights: Tensor) -> Tensor:
    """Multiply features (n, R) by weights (R, k), k small; BLAS takes half the time on transposed chunks."""
    left = weights.T.contiguous()
    return torch.cat([(left @ chunk.T).T for chunk in features.split(CHUNK_ROWS)])
