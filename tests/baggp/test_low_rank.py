"""Low-rank features: a diagonal Gram matrix, whatever the blocks."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import generator

from mipl.baggp.low_rank import low_rank
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.nystrom import principal_map


def test_features_have_a_diagonal_gram_matrix_and_do_not_depend_on_the_blocks() -> None:
    X = torch.randn(500, 3, generator=generator(), dtype=torch.float64)
    offsets, known = np.arange(0, 501, 10), np.zeros((50, 2))
    kernel_map = principal_map(*kmeans_landmarks(X, 30, generator()), 1.0, rank=20)
    whole = low_rank(X, offsets, known, kernel_map)
    parts = low_rank(X, offsets, known, kernel_map, block_instances=64)
    assert len(parts.blocks) > 5
    phi, before = torch.cat([block.features for block in parts.blocks]), kernel_map(X)
    torch.testing.assert_close(phi.T @ phi, torch.diag(whole.eigenvalues), atol=1e-6, rtol=0)
    torch.testing.assert_close(phi @ phi.T, before @ before.T, atol=1e-6, rtol=0)
    torch.testing.assert_close(whole.kernel_map(X), whole.blocks[0].features)


def test_a_lower_rank_keeps_nearly_what_the_best_subspace_keeps() -> None:
    X = torch.randn(3000, 3, generator=generator(), dtype=torch.float64)
    landmarks = kmeans_landmarks(X, 100, generator())
    spectrum = torch.linalg.svdvals(principal_map(*landmarks, 1.0, rank=100)(X)).square()
    kept = low_rank(X, np.arange(3001), np.zeros((3000, 2)), principal_map(*landmarks, 1.0, rank=50))
    assert spectrum[50:].sum() < 0.05 * spectrum.sum()
    assert kept.eigenvalues.sum() > spectrum[:50].sum() - 0.01 * spectrum.sum()
