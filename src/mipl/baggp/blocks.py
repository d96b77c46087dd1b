"""Blocks: consecutive bags whose features are computed, kept and summed over together.

Everything that BagGP learns is a sum over bags. A step is written as *statistics*, pure functions of one block and the
present parameters, and a *solve* that sees only their sums, taken in the order of the blocks.
"""

from __future__ import annotations

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

__all__ = ["Block", "cut", "thin_product", "total", "with_log_prior"]


@dataclass(frozen=True)
class Block:
    """The features of some consecutive bags.

    Attributes
    ----------
    features : (n_b, R) float32
    offsets : (m_b + 1,) int64, the bags as segments of the rows
    log_prior : (m_b, q) float64
        What is known of each bag's label: zero for a candidate, -inf for a label that is none.
    """

    features: Tensor
    offsets: Tensor
    log_prior: Tensor

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

    def select(self, bags: Tensor) -> Block:
        """The bags of a mask (m_b,), copied."""
        rows = torch.repeat_interleave(bags, self.sizes)
        offsets = torch.cat([self.offsets.new_zeros(1), self.sizes[bags].cumsum(0)])
        return Block(self.features[rows], offsets, self.log_prior[bags])


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


def thin_product(features: Tensor, weights: Tensor) -> Tensor:
    """Multiply features (n, R) by weights (R, k), k small; BLAS takes half the time on transposed chunks."""
    left = weights.T.contiguous()
    return torch.cat([(left @ chunk.T).T for chunk in features.split(CHUNK_ROWS)])
