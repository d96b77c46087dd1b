"""Small blocks of random features for the tests of BagGP."""

from __future__ import annotations

import numpy as np
import torch

from mipl.baggp.blocks import Block


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_block(sizes: list[int], rank: int = 6, q: int = 3, seed: int = 0) -> Block:
    g = generator(seed)
    offsets = torch.tensor([0, *np.cumsum(sizes)])
    candidates = torch.rand(len(sizes), q, generator=g) < 0.6
    candidates[:, 0] |= ~candidates.any(dim=1)
    return Block(torch.randn(sum(sizes), rank, generator=g, dtype=torch.float64), offsets, log_prior(candidates))


def log_prior(candidates: torch.Tensor | np.ndarray) -> torch.Tensor:
    """What candidate sets (m, q) say of labels: zero for a candidate, -inf for the others."""
    mask = torch.tensor(np.asarray(candidates))
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
