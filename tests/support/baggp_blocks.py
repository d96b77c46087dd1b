"""Small blocks of random features for the tests of BagGP."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from mipl.bag_posterior import segment_sum
from mipl.baggp.blocks import Block, Blocks, Column, Part, divide
from mipl.baggp.low_rank import LowRank, low_rank
from mipl.baggp.places import Local
from mipl.baggp.sources import ready
from mipl.gp.nystrom import KernelMap


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_block(sizes: list[int], rank: int = 6, seed: int = 0) -> Block:
    offsets = torch.tensor([0, *np.cumsum(sizes)])
    return block_of(torch.randn(sum(sizes), rank, generator=generator(seed), dtype=torch.float64), offsets)


def random_candidates(m: int, q: int, seed: int = 0) -> torch.Tensor:
    candidates = torch.rand(m, q, generator=generator(seed)) < 0.6
    candidates[:, 0] |= ~candidates.any(dim=1)
    return candidates


def block_of(features: torch.Tensor, offsets: torch.Tensor) -> Block:
    return Block(features, segment_sum(features, offsets), offsets)


def blocks_of(*blocks: Block) -> Blocks:
    """Blocks of consecutive bags, each a run of its own, in memory."""
    edges = np.cumsum([0, *(len(block.sums) for block in blocks)])
    parts = [[Part(np.arange(a, b), 0)] for a, b in pairwise(edges.tolist())]
    return Blocks(Local(), Column.of([[block] for block in blocks]), parts)


def low_rank_of(
    X: torch.Tensor,
    offsets: np.ndarray,
    kernel_map: KernelMap,
    folds: np.ndarray | None = None,
    instances: int = 10_000,
    weight: torch.Tensor | None = None,
) -> LowRank:
    """Features of instances in memory, cut into runs of so many instances."""
    parts = divide(len(X), np.zeros(len(offsets) - 1, dtype=int) if folds is None else folds, instances)
    return low_rank(Blocks(Local(), ready(X, offsets, parts), parts, weight), kernel_map)


def log_prior(candidates: torch.Tensor | np.ndarray) -> torch.Tensor:
    """What candidate sets (m, q) say of labels: zero for a candidate, -inf for the others."""
    mask = torch.tensor(np.asarray(candidates))
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
