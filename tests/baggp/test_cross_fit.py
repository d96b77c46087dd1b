"""Cross-fitting against fits by hand without the fold, and folds that respect groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from baggp_blocks import block_of, blocks_of, generator, log_prior, low_rank_of

from mipl.baggp.constants import SIGNAL_VARIANCES
from mipl.baggp.cross_fit import assign_folds, read_held_out, regress_without_folds
from mipl.baggp.leave_out import leave_out_factors
from mipl.baggp.likelihood import Problem, fit_bag_likelihoods
from mipl.baggp.low_rank import Ridge
from mipl.baggp.model import Expert
from mipl.baggp.regression import fit_bag_regression, own_votes_of_parts
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map


@pytest.mark.parametrize("sizes", [(15, 15, 15, 15), (30, 10, 10, 10)])
def test_held_out_evidence_is_that_of_a_fit_to_the_other_bags_alone(sizes: tuple[int, ...]) -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=4.0)
    X = torch.tensor(ds.bags.instances).double()
    known = log_prior(ds.candidates)
    kernel_map = principal_map(*kmeans_landmarks(X, 40, generator()), median_distance(X, generator()), rank=25)
    folds = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    data = low_rank_of(X, ds.bags.offsets, kernel_map, folds, instances=200)
    assert len(data.blocks.parts) > 2
    order = data.blocks.bags
    sets = torch.tensor(ds.candidates)[order]
    without = regress_without_folds(data, known[order], sets, SIGNAL_VARIANCES[1])
    found = read_held_out(data, without, fit_bag_likelihoods(data.blocks, [fold.problem for fold in without]))
    inside = np.isin(folds, [2, 3])
    others = ds[~inside]
    features = data.kernel_map(torch.tensor(others.bags.instances).double())
    gram = features.T @ features
    blocks = blocks_of(block_of(features, torch.tensor(others.bags.offsets)))
    variance = SIGNAL_VARIANCES[1]
    even = len(set(sizes)) == 1
    share = 0.5 if even else float(gram.trace() / data.spectrum.sum())
    votes = own_votes_of_parts(blocks, data.spectrum, known[~inside], variance, share)
    if even:  # such folds have the noise of all bags at the start
        noise = own_votes_of_parts(data.blocks, data.spectrum, known[order], variance, share).start_noise
        ridge = Ridge.of(share * data.spectrum, noise)
        start = blocks.map(leave_out_factors, blocks.features, ridge=ridge, share=share)
        votes = votes._replace(start_noise=noise, start=start)
    regression = fit_bag_regression(blocks, gram, known[~inside], variances=[variance], own_votes=votes)
    candidates = torch.tensor(others.candidates)
    (likelihood,) = fit_bag_likelihoods(blocks, [Problem(gram.diagonal(), regression.posterior, candidates)])
    left_out = ds[inside]
    new = block_of(data.kernel_map(torch.tensor(left_out.bags.instances).double()), torch.tensor(left_out.bags.offsets))
    for evidence, expert, tolerance in ((found[0], regression.expert, 1e-4), (found[1], likelihood.expert, 0.02)):
        expected = Expert.read(new, expert)
        torch.testing.assert_close(evidence[np.argsort(order)[inside]], expected, atol=tolerance, rtol=tolerance)


def test_folds_are_even_and_keep_groups_together() -> None:
    assert np.bincount(assign_folds(10, 4, np.random.default_rng(0))).tolist() == [3, 3, 2, 2]
    groups = np.repeat(np.arange(9), [20, 5, 5, 5, 5, 5, 5, 5, 5])
    folds = assign_folds(60, 4, np.random.default_rng(0), groups)
    assert all(len(np.unique(folds[groups == g])) == 1 for g in range(9))
    assert np.bincount(folds).tolist() == [20, 15, 15, 10]
