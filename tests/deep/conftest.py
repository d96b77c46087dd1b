"""A small batch of bags in double precision, and networks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mipl.deep.attention import Segments
from mipl.deep.base import DeepMIPL
from mipl.deep.network import BagNetwork, Batch

D, Q = 5, 4


def pick(batch: Batch, i: int) -> Batch:
    sizes = batch.segments.sizes
    rows = batch.segments.bag == i
    return Batch(batch.instances[rows], Segments.of_sizes(sizes[i : i + 1]), batch.candidates[[i]], batch.weights[[i]])


@pytest.fixture
def batch() -> Batch:
    """Four bags, one of them of a single instance, one with all labels for candidates."""
    generator = torch.Generator().manual_seed(5)
    sizes = torch.tensor([3, 1, 4, 2])
    instances = torch.randn(10, D, dtype=torch.float64, generator=generator)
    candidates = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 1]], dtype=torch.bool)
    weights = torch.rand(4, Q, dtype=torch.float64, generator=generator) * candidates
    return Batch(instances, Segments.of_sizes(sizes), candidates, weights / weights.sum(dim=1, keepdim=True))


@pytest.fixture
def single(batch: Batch) -> list[Batch]:
    """The bags of `batch` one by one."""
    return [pick(batch, i) for i in range(len(batch.weights))]


@pytest.fixture
def network() -> Callable[[DeepMIPL], Any]:
    """The network of an estimator in double precision, with weights large enough for answers to differ."""

    def build(estimator: DeepMIPL) -> BagNetwork:
        built = estimator._network((D,), Q, torch.Generator().manual_seed(1)).double()
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.mul_(3)
        return built

    return build
