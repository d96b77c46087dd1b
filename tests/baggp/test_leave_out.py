"""Leave-one-bag-out predictions against explicit refits."""

from __future__ import annotations

import pytest
import torch
from baggp_blocks import block_of, generator, make_block

from mipl.baggp.leave_out import leave_out_factors
from mipl.baggp.low_rank import Ridge


@pytest.mark.parametrize("sizes", [[3, 1, 5, 5, 2, 4], [9, 2, 8, 1]])
@pytest.mark.parametrize("rotated", [True, False])
def test_leaving_a_bag_out_equals_a_refit_without_it(sizes: list[int], rotated: bool) -> None:
    # The second list has bags longer than the 6 features, which are inverted in feature space.
    block, noise = make_block(sizes), 0.3
    phi = block.features
    gram = phi.T @ phi
    if rotated:
        gram, vectors = torch.linalg.eigh(gram)
        phi = phi @ vectors
    ridge = Ridge.of(gram, noise)
    y = torch.randn(len(phi), 2, generator=generator(1), dtype=torch.float64)
    fitted = phi @ ridge.solve(phi.T @ y)
    left_out = leave_out_factors(block_of(phi, block.offsets), ridge).predict(phi, y, fitted)
    eye = torch.eye(phi.shape[1], dtype=phi.dtype)
    for low, high in zip(block.offsets[:-1], block.offsets[1:], strict=True):
        rest = torch.ones(len(phi), dtype=torch.bool)
        rest[low:high] = False
        coef = torch.linalg.solve(phi[rest].T @ phi[rest] + noise * eye, phi[rest].T @ y[rest])
        torch.testing.assert_close(left_out[low:high], phi[low:high] @ coef, atol=1e-10, rtol=0)


@pytest.mark.parametrize("sizes", [[3, 1, 5, 5, 2, 4], [9, 2, 8, 1]])
def test_of_a_weighted_bag_one_copy_is_left_out_or_all_where_there_is_less(sizes: list[int]) -> None:
    block, noise = make_block(sizes), 0.3
    weight = torch.tensor([3.0, 0.4, 1.0, 1.7, 0.9, 2.0][: len(sizes)], dtype=torch.float64)
    rows = torch.repeat_interleave(weight, block.offsets.diff())[:, None]
    phi = block.features
    ridge = Ridge.of(phi.T @ (rows * phi), noise)
    y = torch.randn(len(phi), 2, generator=generator(1), dtype=torch.float64)
    fitted = phi @ ridge.solve(phi.T @ (rows * y))
    left_out = leave_out_factors(block._replace(weight=weight), ridge).predict(phi, y, fitted)
    eye = torch.eye(phi.shape[1], dtype=phi.dtype)
    for b, (low, high) in enumerate(zip(block.offsets[:-1], block.offsets[1:], strict=True)):
        rest = rows.clone()
        rest[low:high] = max(weight[b] - 1, 0)
        coef = torch.linalg.solve(phi.T @ (rest * phi) + noise * eye, phi.T @ (rest * y))
        torch.testing.assert_close(left_out[low:high], phi[low:high] @ coef, atol=1e-10, rtol=0)


@pytest.mark.parametrize("sizes", [[3, 1, 5, 5, 2, 4], [9, 2, 8, 1]])
def test_where_a_share_of_the_other_bags_is_kept_leaving_a_bag_out_equals_a_refit_with_that_share(
    sizes: list[int],
) -> None:
    block, noise, share = make_block(sizes), 0.3, 0.75
    spectrum, vectors = torch.linalg.eigh(block.features.T @ block.features)
    phi = block.features @ vectors
    factors = leave_out_factors(block_of(phi, block.offsets), Ridge.of(share * spectrum, noise), share)
    y = torch.randn(len(phi), 2, generator=generator(1), dtype=torch.float64)
    eye = torch.eye(phi.shape[1], dtype=phi.dtype)
    for low, high in zip(block.offsets[:-1], block.offsets[1:], strict=True):
        kept = torch.full((len(phi), 1), share, dtype=phi.dtype)
        kept[low:high] = 1
        fitted = phi @ torch.linalg.solve(phi.T @ (kept * phi) + noise * eye, phi.T @ (kept * y))
        kept[low:high] = 0
        coef = torch.linalg.solve(phi.T @ (kept * phi) + noise * eye, phi.T @ (kept * y))
        left_out = factors.predict(phi, y, fitted)[low:high]
        torch.testing.assert_close(left_out, phi[low:high] @ coef, atol=1e-10, rtol=0)
