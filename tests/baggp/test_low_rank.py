"""Low-rank features: a diagonal Gram matrix, whatever the blocks."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import block_of, blocks_of, generator, low_rank_of

from mipl.baggp.low_rank import gram_matrix
from mipl.baggp.places import Local
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.nystrom import principal_map


def test_features_have_a_diagonal_gram_matrix_and_do_not_depend_on_the_blocks() -> None:
    X = torch.randn(500, 3, generator=generator(), dtype=torch.float64)
    offsets, folds = np.arange(0, 501, 10), np.arange(50) % 3
    kernel_map = principal_map(*kmeans_landmarks(X, 30, generator()), 1.0, rank=20)
    whole = low_rank_of(X, offsets, kernel_map)
    parts = low_rank_of(X, offsets, kernel_map, folds, instances=64)
    assert len(parts.blocks.parts) > 5
    blocks = Local().fetch(parts.blocks.features)
    order = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in parts.blocks.bags])
    phi, before = torch.cat([block.features for block in blocks]), kernel_map(X)[order]
    torch.testing.assert_close(phi.T @ phi, torch.diag(whole.spectrum), atol=1e-6, rtol=0)
    torch.testing.assert_close(phi @ phi.T, before @ before.T, atol=1e-6, rtol=0)
    torch.testing.assert_close(whole.kernel_map(X), Local().fetch(whole.blocks.features)[0].features)
    torch.testing.assert_close(gram_matrix(parts.blocks), phi.T @ phi, atol=1e-6, rtol=0)


def test_the_gram_matrix_of_weighted_rows_is_the_sum_of_weighted_outer_products() -> None:
    features = torch.randn(70, 300, generator=generator(), dtype=torch.float64)  # more columns than are taken at a time
    weight = torch.rand(7, generator=generator(1), dtype=torch.float64)
    blocks = blocks_of(block_of(features, torch.arange(0, 71, 10))._replace(weight=weight))
    expected = (features.T * torch.repeat_interleave(weight, 10)) @ features
    torch.testing.assert_close(gram_matrix(blocks), expected)


def test_a_lower_rank_keeps_nearly_what_the_best_subspace_keeps() -> None:
    X = torch.randn(3000, 3, generator=generator(), dtype=torch.float64)
    landmarks = kmeans_landmarks(X, 100, generator())
    spectrum = torch.linalg.svdvals(principal_map(*landmarks, 1.0, rank=100)(X)).square()
    kept = low_rank_of(X, np.arange(3001), principal_map(*landmarks, 1.0, rank=50))
    assert spectrum[50:].sum() < 0.05 * spectrum.sum()
    assert kept.spectrum.sum() > spectrum[:50].sum() - 0.01 * spectrum.sum()
