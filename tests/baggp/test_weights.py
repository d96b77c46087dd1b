"""Weights of bags in every part of BagGP, against copies of the bags."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from baggp_blocks import block_of, generator, log_prior, low_rank_of, make_block, random_candidates

from mipl import BagGP, MIPLDataset
from mipl.baggp.blocks import Block
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.cross_fit import assign_folds
from mipl.baggp.likelihood_sums import LabelPrior, likelihood_statistics
from mipl.baggp.low_rank import upper_gram
from mipl.baggp.regression import fit_bag_regressions
from mipl.baggp.stacking import fit_stacking, label_free
from mipl.baggp.votes import fit_belief
from mipl.baggp.weights import mean_and_error
from mipl.checks import small_problem
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map

WEIGHT = torch.tensor([1.0, 3.0, 2.0, 1.0, 2.0], dtype=torch.float64)
COPIES = torch.repeat_interleave(torch.arange(5), WEIGHT.long())


def weighted_and_copied() -> tuple[Block, Block]:
    """A block of five bags with weights, and one with copies of these bags."""
    block = make_block([1, 4, 3, 6, 2])
    rows = torch.cat([torch.arange(int(block.offsets[b]), int(block.offsets[b + 1])) for b in COPIES])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), block.offsets.diff()[COPIES].cumsum(0)])
    return block._replace(weight=WEIGHT), block_of(block.features[rows], offsets)


@pytest.mark.parametrize("hold_prior", [True, False])
def test_likelihood_and_gradient_count_copies(hold_prior: bool) -> None:
    weighted, copied = weighted_and_copied()
    candidates = random_candidates(5, 3)
    prior = torch.where(candidates, torch.rand(5, 3, generator=generator(2), dtype=torch.float64), 0.0)
    W = torch.randn(1, 4, 6, generator=generator(3), dtype=torch.float64)
    bias = torch.tensor([-3.0, -2.0, -3.0, -0.1], dtype=torch.float64)
    values, gradients = zip(
        *(
            likelihood_statistics(
                block, LabelPrior.of(p, p > 0, counts[:, None]), [0], W, bias, math.log(2.0), hold_prior
            )
            for block, p, counts in (
                (weighted, prior[:, None], WEIGHT),
                (copied, prior[COPIES, None], torch.ones(len(COPIES))),
            )
        ),
        strict=True,
    )
    torch.testing.assert_close(values[0], values[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_gram_matrix_and_folds_count_copies() -> None:
    weighted, copied = weighted_and_copied()
    torch.testing.assert_close(upper_gram(weighted.features, weighted.row_weight), upper_gram(copied.features))
    rng = np.random.default_rng(0)
    groups = np.array([0, 0, 1, 2, 3])
    folds = assign_folds(5, 2, rng, groups, WEIGHT.numpy())
    assert folds[COPIES].tolist() == assign_folds(9, 2, rng, groups[COPIES]).tolist()


def test_offsets_and_stacking_count_copies() -> None:
    g = generator(4)
    evidence, other = (2 * torch.randn(200, 3, generator=g, dtype=torch.float64) for _ in range(2))
    known = log_prior(torch.rand(200, 3, generator=g) < 0.5)
    known[torch.arange(200), evidence.argmax(dim=1)] = 0.0
    weight = torch.randint(1, 4, (200,), generator=g).double()
    copies = torch.repeat_interleave(torch.arange(200), weight.long())
    one = torch.ones(len(copies), 1, dtype=torch.float64)
    torch.testing.assert_close(
        class_offsets(evidence[:, None], known[:, None], weight[:, None]),
        class_offsets(evidence[copies, None], known[copies, None], one),
    )
    found = fit_stacking(evidence, other, known, weight)
    expected = fit_stacking(evidence[copies], other[copies], known[copies])
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-3)
    assert found.outlier_rate == pytest.approx(expected.outlier_rate, abs=1e-4)
    P = found.probabilities(evidence, other)
    assert label_free(P, known, weight) == pytest.approx(label_free(P[copies], known[copies]))
    votes = np.random.default_rng(0).integers(1, 9, (200, 3)) * (known == 0).numpy().astype(float)
    votes[::2] /= 9  # odds
    found = fit_belief(evidence, votes, sample_weight=weight)
    assert found == pytest.approx(fit_belief(evidence[copies], votes[copies.numpy()]), rel=1e-3)


def test_mean_and_error_count_copies() -> None:
    values = torch.randn(5, generator=generator(), dtype=torch.float64)
    assert mean_and_error(values, WEIGHT) == pytest.approx(mean_and_error(values[COPIES], None))


@pytest.mark.parametrize("landmarks", [400, 60])
def test_bag_regression_counts_copies(landmarks: int) -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=4.0)
    weight = 1 + np.arange(60) % 3
    copies = np.repeat(np.arange(60), weight)
    X, known = torch.tensor(ds.bags.instances).double(), log_prior(ds.candidates)
    # The same landmarks for both: those of copies start from other rows.
    kernel_map = principal_map(*kmeans_landmarks(X, landmarks, generator()), median_distance(X, generator()), rank=50)
    weighted = low_rank_of(X, ds.bags.offsets, kernel_map, weight=torch.tensor(weight).double())
    bags = ds.bags[copies]
    copied = low_rank_of(torch.tensor(bags.instances).double(), bags.offsets, kernel_map)
    torch.testing.assert_close(weighted.spectrum, copied.spectrum)
    a, b = (
        fit_bag_regressions(part.blocks, W[:, None], [part.spectrum], part.spectrum, prior, 1.0)
        for part, W, prior in (
            (weighted, torch.tensor(weight).double(), known),
            (copied, torch.ones(len(copies), dtype=torch.float64), known[copies]),
        )
    )
    first = np.searchsorted(copies, np.arange(60))
    torch.testing.assert_close(a.log_evidence, b.log_evidence[first], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(a.experts[0].class_offset, b.experts[0].class_offset, atol=1e-4, rtol=0)


def fit_twice(options: dict[str, Any], candidates: Any, **more: Any) -> tuple[BagGP, BagGP]:
    """A fit with weights, and one with copies that share a group."""
    bags, *_ = small_problem(m=48)
    weight = 1 + np.arange(48) % 3
    copies = np.repeat(np.arange(48), weight)
    weighted = BagGP(**options).fit(bags, candidates, groups=np.arange(48), sample_weight=weight, **more)
    return weighted, BagGP(**options).fit(bags[copies], candidates[copies], groups=copies, **more)


CASES = ["sets", "votes", "background", "no cross-fitting"]


def assert_copies_count(case: str, tolerance: float) -> None:
    _, candidates, _ = small_problem(m=48)
    votes = np.where(candidates, np.random.default_rng(0).integers(1, 9, candidates.shape), 0)
    a, b = fit_twice(
        {"cross_fit": 0} if case == "no cross-fitting" else {},
        votes if case == "votes" else candidates,
        **({"background": 1} if case == "background" else {}),
    )
    new, *_ = small_problem(m=40, seed=8)
    np.testing.assert_allclose(a.predict_proba(new), b.predict_proba(new), atol=tolerance)
    np.testing.assert_allclose(a.predict_instances(new), b.predict_instances(new), atol=10 * tolerance)
    first = np.searchsorted(np.repeat(np.arange(48), 1 + np.arange(48) % 3), np.arange(48))
    np.testing.assert_allclose(a.posterior_, b.posterior_[first], atol=tolerance)
    assert a.outlier_rate_ == pytest.approx(b.outlier_rate_, abs=tolerance)
    if case != "no cross-fitting":
        assert a.label_free_score_ == pytest.approx(b.label_free_score_, abs=tolerance)
        assert a.label_free_error_ == pytest.approx(b.label_free_error_, abs=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_the_whole_estimator_counts_copies_in_double_precision(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def double(X: Any, device: torch.device, origin: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(X, dtype=np.float64), device=device)

    monkeypatch.setattr("mipl.baggp.estimator.bounded_tensor", double)
    assert_copies_count(case, 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_the_whole_estimator_nearly_counts_copies_in_single_precision(case: str) -> None:
    # The search for the mode stops early, and rounding grows along its path.
    assert_copies_count(case, 2e-2)


def test_bags_of_weight_zero_are_resolved_as_new_bags() -> None:
    bags, candidates, _ = small_problem(m=48)
    weight = np.where(np.arange(48) % 4 == 0, 0, 1)
    ds = MIPLDataset(bags, candidates)
    model = BagGP().fit(ds, sample_weight=weight)
    assert model.posterior_.shape == (36, 3)
    resolved, kept = model.resolve(ds), weight > 0
    np.testing.assert_array_equal(resolved[kept], model.posterior_)
    proba = np.where(candidates, model.predict_proba(bags), 0)
    expected = proba / proba.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(resolved[~kept], expected[~kept])


def test_a_fraction_lies_between_leaving_a_bag_out_and_keeping_it() -> None:
    """Bags whose candidate sets lack the label harm less, the less they weigh."""
    ds = make_bags(n_bags=150, n_classes=3, n_features=8, separation=6.0, sizes=(4, 8), r=1)
    train, test = ds.split(0.5, seed=0)
    wrong = np.arange(len(train)) % 3 == 0
    candidates = np.where(wrong[:, None], ~train.candidates, train.candidates)
    loss = []
    for w in (1.0, 0.3, 0.1, 0.0):
        model = BagGP(n_landmarks=200, rank=100, cross_fit=2)
        proba = model.fit(train.bags, candidates, sample_weight=np.where(wrong, w, 1.0)).predict_proba(test.bags)
        loss.append(-np.log(proba[np.arange(len(test)), test.labels]).mean())
    assert loss == sorted(loss, reverse=True)
    assert loss[0] > loss[-1] + 0.5
