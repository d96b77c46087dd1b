"""Blocks are whole bags in order, and thin products are products."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import generator

from mipl.baggp.blocks import cut, thin_product


def test_blocks_are_whole_bags_in_order() -> None:
    offsets = np.array([0, 5, 8, 30, 31, 40])
    for rows in (1, 7, 10, 100):
        slices = cut(offsets, rows)
        assert [i for s in slices for i in range(s.start, s.stop)] == list(range(5))


def test_a_thin_product_is_the_product() -> None:
    features, weights = torch.randn(5000, 7, generator=generator()), torch.randn(7, 3, generator=generator(1))
    result = thin_product(features, weights)
    assert result.is_contiguous()
    torch.testing.assert_close(result, features @ weights)
