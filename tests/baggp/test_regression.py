"""Bag regression against a dense formula, and fits that share their passes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from baggp_blocks import generator, log_prior, low_rank_of

from mipl.baggp import regression as regression_module
from mipl.baggp.constants import SLOPE, START_VARIANCE
from mipl.baggp.cross_fit import fits_of
from mipl.baggp.low_rank import LowRank
from mipl.baggp.model import Expert
from mipl.baggp.places import Local
from mipl.baggp.regression import BagRegressions, fit_bag_regressions
from mipl.dataset import MIPLDataset
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map


def features_of(ds: MIPLDataset, landmarks: int = 40, rank: int = 30, instances: int = 10_000, folds=None) -> LowRank:
    X = torch.tensor(ds.bags.instances).double()
    kernel_map = principal_map(*kmeans_landmarks(X, landmarks, generator()), median_distance(X, generator()), rank=rank)
    return low_rank_of(X, ds.bags.offsets, kernel_map, folds, instances)


def fit_all(data: LowRank, known: torch.Tensor, variance: float = 1.0) -> BagRegressions:
    W = torch.ones(len(known), 1, dtype=torch.float64)
    return fit_bag_regressions(data.blocks, W, [data.spectrum], data.spectrum, known, variance)


def test_bag_regression_resolves_candidates_that_the_bag_itself_does_not_decide() -> None:
    ds = make_bags(n_bags=150, n_classes=5, n_features=10, separation=5.0, r=1)
    known = log_prior(ds.candidates)
    posterior = torch.softmax(fit_all(features_of(ds, 200, 200), known).log_evidence[:, 0] + known, dim=1)
    assert np.mean(posterior.argmax(dim=1).numpy() == ds.labels) > 0.95


def test_the_first_round_is_the_dense_regression_without_each_bag_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression_module, "REGRESSION_ITERATIONS", 1)
    ds = make_bags(n_bags=24, n_classes=3, n_features=4, separation=3.0, r=1)
    data, known = features_of(ds), log_prior(ds.candidates)
    found = fit_all(data, known)
    phi = torch.cat([block.features for block in Local().fetch(data.blocks.features)]).double()
    bag = torch.repeat_interleave(torch.arange(24), torch.tensor(np.diff(ds.bags.offsets)))
    sets = torch.tensor(ds.candidates).double()

    def logits(targets: torch.Tensor, noise: float) -> torch.Tensor:
        y = (targets - targets[bag].mean(dim=0))[bag]
        scores = torch.empty_like(y)
        for b in range(24):
            rest = bag != b
            gram = phi[rest].T @ phi[rest] + noise * torch.eye(phi.shape[1], dtype=torch.float64)
            scores[~rest] = phi[~rest] @ torch.linalg.solve(gram, phi[rest].T @ y[rest])
        standard = (scores - scores.mean(dim=0)) / scores.std(dim=0, correction=0)
        return -math.log(len(bag) / 24) - SLOPE**2 / 2 + SLOPE * standard

    def evidence(g: torch.Tensor) -> torch.Tensor:
        total = torch.stack([torch.nn.functional.softplus(g[bag == b]).sum(dim=0) for b in range(24)])
        return torch.log(torch.expm1(total))

    def offset(of: torch.Tensor) -> torch.Tensor:
        o = torch.zeros(3, dtype=torch.float64)
        for _ in range(200):
            o = 0.5 * (o - 0.9 * torch.log(3 * torch.softmax(of + known + o, dim=1).mean(dim=0)))
        return o

    rho = (sets.sum(dim=1).mean() - 1) / 2
    targets = (sets - rho) / (1 - rho)
    spread = targets[bag].var(dim=0, correction=0).mean()
    first = evidence(logits(targets, max(float(spread), 2 / 9) / START_VARIANCE))
    second = evidence(logits(torch.softmax(first + offset(first) + known, dim=1), 2 / 9))
    torch.testing.assert_close(found.log_evidence[:, 0], second + offset(second), atol=1e-3, rtol=1e-3)


def test_bag_regression_does_not_depend_on_how_bags_are_cut_into_blocks() -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=5.0)
    known = log_prior(ds.candidates)
    whole, cut = (features_of(ds, 60, 40, rows) for rows in (10_000, 100))
    assert len(cut.blocks.parts) > 4
    torch.testing.assert_close(
        fit_all(whole, known).log_evidence, fit_all(cut, known).log_evidence, atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("sizes", [(15, 15, 15, 15), (30, 10, 10, 10)])
def test_a_fit_without_a_fold_is_one_to_the_other_bags_and_reads_the_fold_as_new_bags(sizes: tuple[int, ...]) -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=4.0)
    known = log_prior(ds.candidates)
    folds = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    data = features_of(ds, 40, 25, 200, folds)
    order = data.blocks.bags
    fits = fits_of(data, folds[order])
    assert (fits.W[:, 1:] == torch.tensor(folds[order])[:, None].ne(torch.arange(4))).all()
    others = fits.others()
    found = fit_bag_regressions(others.blocks, others.W, others.grams, others.spectrum, known[order], 1.0)
    inside = others.W[:, 0] > 0  # of the fit without the first fold
    one = fit_bag_regressions(others.blocks, others.W[:, :1], others.grams[:1], others.spectrum, known[order], 1.0)
    # Fits that share their passes share the noise of their start, and nothing else.
    torch.testing.assert_close(found.log_evidence[:, 0], one.log_evidence[:, 0], atol=0.05, rtol=0.05)
    read = data.blocks.cat(Expert.read, data.blocks.features, expert=found.experts[0])
    torch.testing.assert_close(found.log_evidence[~inside, 0], read[~inside], atol=1e-4, rtol=1e-4)
    # What the held-out bags' candidates are has no influence on what the fit says of anything.
    elsewhere = known[order].clone()
    elsewhere[~inside] = 0.0
    elsewhere[~inside, 0] = -torch.inf
    again = fit_bag_regressions(others.blocks, others.W[:, :1], others.grams[:1], others.spectrum, elsewhere, 1.0)
    torch.testing.assert_close(again.log_evidence, one.log_evidence, atol=1e-6, rtol=1e-6)


def test_regression_does_not_unlearn_where_an_instance_says_little() -> None:
    """More rounds keep what the first ones found; with curves fitted to their own answers it was lost."""
    ds = make_bags(n_bags=304, n_classes=8, n_features=10, separation=2.6, sizes=(15, 25), r=4)
    known = log_prior(ds.candidates)
    data = features_of(ds, 300, 300)
    right = (fit_all(data, known, 0.01).log_evidence[:, 0] + known).argmax(dim=1).numpy() == ds.labels
    assert right.mean() > 0.35  # a guess among five candidates has 0.2
