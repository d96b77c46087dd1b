"""Cross-fitting against fits by hand without the fold, and folds that respect groups."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import generator, log_prior

from mipl.baggp.constants import SIGNAL_VARIANCES
from mipl.baggp.cross_fit import assign_folds, held_out_evidence
from mipl.baggp.likelihood import fit_bag_likelihood
from mipl.baggp.low_rank import low_rank
from mipl.baggp.regression import fit_bag_regression
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map


def test_held_out_evidence_is_that_of_a_fit_to_the_other_bags_alone() -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=4.0)
    X = torch.tensor(ds.bags.instances).double()
    known = log_prior(ds.candidates).numpy()
    kernel_map = principal_map(*kmeans_landmarks(X, 40, generator()), median_distance(X, generator()), rank=25)
    blocks, eigenvalues, _ = low_rank(X, ds.bags.offsets, known, kernel_map, block_instances=200)
    assert len(blocks) > 2
    folds = assign_folds(60, 4)
    found = held_out_evidence(blocks, eigenvalues, folds, SIGNAL_VARIANCES[1], None)
    inside = folds == 2
    others = ds[~inside]
    part = low_rank(torch.tensor(others.bags.instances).double(), others.bags.offsets, known[~inside], kernel_map)
    regression = fit_bag_regression(part.blocks, part.eigenvalues, variances=[SIGNAL_VARIANCES[1]])
    likelihood = fit_bag_likelihood(part.blocks, part.eigenvalues, regression.posterior)
    left_out = ds[inside]
    features = part.kernel_map(torch.tensor(left_out.bags.instances).double())
    offsets = torch.tensor(left_out.bags.offsets)
    for evidence, expert, tolerance in ((found[0], regression.expert, 1e-3), (found[1], likelihood, 0.05)):
        expected = expert.log_evidence(expert.logits(features), offsets)
        torch.testing.assert_close(evidence[torch.tensor(inside)], expected, atol=tolerance, rtol=tolerance)


def test_folds_are_even_and_keep_groups_together() -> None:
    assert np.bincount(assign_folds(10, 4)).tolist() == [3, 3, 2, 2]
    groups = np.repeat(np.arange(9), [20, 5, 5, 5, 5, 5, 5, 5, 5])
    folds = assign_folds(60, 4, groups)
    assert all(len(np.unique(folds[groups == g])) == 1 for g in range(9))
    assert np.bincount(folds).tolist() == [20, 15, 15, 10]
