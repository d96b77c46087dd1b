"""Folds that respect groups, and Gram matrices of fits without them."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import generator, low_rank_of

from mipl.baggp.cross_fit import assign_folds, fits_of
from mipl.baggp.places import Local
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map


def test_gram_matrices_of_fits_without_a_fold_are_those_of_the_other_bags() -> None:
    ds = make_bags(n_bags=42, n_classes=3, n_features=4, separation=4.0)
    X = torch.tensor(ds.bags.instances).double()
    kernel_map = principal_map(*kmeans_landmarks(X, 40, generator()), median_distance(X, generator()), rank=25)
    folds = np.arange(42) % 3
    weight = torch.tensor(1.0 + np.arange(42) % 2)
    data = low_rank_of(X, ds.bags.offsets, kernel_map, instances=100, weight=weight)
    order = data.blocks.bags
    fits = fits_of(data, folds[order])
    blocks = Local().fetch(data.blocks.features)
    rows = torch.repeat_interleave(torch.tensor(order), torch.cat([block.offsets.diff() for block in blocks]))
    phi = torch.cat([block.features for block in blocks]).double()
    for k, gram in enumerate(fits.grams[1:]):
        scale = (weight * torch.tensor(folds != k))[rows]
        torch.testing.assert_close(gram, phi.T @ (scale[:, None] * phi), atol=1e-4, rtol=1e-4)
    values = torch.randn(42, 4, 2)
    held_out = fits.held_out(values)
    assert all((held_out[i] == values[i, 1 + folds[order[i]]]).all() for i in range(42))


def test_folds_are_even_and_keep_groups_together() -> None:
    assert np.bincount(assign_folds(10, 4, np.random.default_rng(0))).tolist() == [3, 3, 2, 2]
    groups = np.repeat(np.arange(9), [20, 5, 5, 5, 5, 5, 5, 5, 5])
    folds = assign_folds(60, 4, np.random.default_rng(0), groups)
    assert all(len(np.unique(folds[groups == g])) == 1 for g in range(9))
    assert np.bincount(folds).tolist() == [20, 15, 15, 10]
