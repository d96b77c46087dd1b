"""Thin products are products."""

from __future__ import annotations

import torch
from baggp_blocks import generator

from mipl.baggp.blocks import thin_product


def test_a_thin_product_is_the_product() -> None:
    features, weights = torch.randn(5000, 7, generator=generator()), torch.randn(7, 3, generator=generator(1))
    result = thin_product(features, weights)
    assert result.T.is_contiguous()
    torch.testing.assert_close(result, features @ weights)
