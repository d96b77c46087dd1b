"""How far the fit to all bags is trusted, beyond what fits without a fold deserve."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from baggp_blocks import log_prior

from mipl.baggp.constants import MOST_EXTRAPOLATION
from mipl.baggp.cross_fit import HeldOut
from mipl.baggp.extrapolation import extrapolate, kept_share
from mipl.baggp.model import Stacking

M, Q = 400, 5


def sets_and_labels() -> tuple[torch.Tensor, torch.Tensor]:
    """What is known of the labels of M bags with two candidates each, and the labels."""
    g = torch.Generator().manual_seed(0)
    label = torch.randint(Q, (M, 1), generator=g)
    false = (label + torch.randint(1, Q, (M, 1), generator=g)) % Q
    return log_prior(torch.zeros(M, Q, dtype=torch.bool).scatter_(1, torch.cat([label, false], dim=1), True)), label


def evidence(label: torch.Tensor, right: float, size: float, seed: int) -> torch.Tensor:
    """Log evidence (M, Q) with one class above the others by `size`, the label in a share `right` of the bags."""
    g = torch.Generator().manual_seed(seed)
    false = (label + torch.randint(1, Q, (M, 1), generator=g)) % Q
    best = torch.where(torch.rand(M, 1, generator=g) < right, label, false)
    return size * torch.zeros(M, Q, dtype=torch.float64).scatter_(1, best, 1.0)


def inside(n_folds: int) -> list[torch.Tensor]:
    return [torch.arange(M) % n_folds != fold for fold in range(n_folds)]


def extrapolated(ratio: float, full: float, without: float, n_folds: int = 4) -> tuple[Stacking, Stacking, HeldOut]:
    """The stacking before and after, where fits are right on shares `full` and `without` of the bags they have seen."""
    known, label = sets_and_labels()
    fitted = Stacking(np.array([0.6, 0.4]), 0.02)
    held_out = HeldOut(evidence(label, 0.5, 2.0, 1), evidence(label, 0.5, 2.0, 1))
    others = [(evidence(label, without, 2.0, 2 + k), each) for k, each in enumerate(inside(n_folds))]
    found = extrapolate(fitted, held_out, ratio, evidence(label, full, 2.0, 99), others, known)
    return fitted, found, held_out


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_nothing_changes_where_nothing_was_learned_or_nothing_is_left_to_learn(ratio: float) -> None:
    fitted, found, _ = extrapolated(ratio, full=0.8, without=0.8)
    assert found.weights.tolist() == fitted.weights.tolist()
    assert found.outlier_rate == fitted.outlier_rate


def test_fits_to_nearly_all_bags_are_as_good_as_that_to_all() -> None:
    fitted, found, _ = extrapolated(0.5, full=0.8, without=0.8, n_folds=8)
    assert found.weights.tolist() == fitted.weights.tolist()


@pytest.mark.parametrize("n_folds", [2, 4])
def test_half_way_the_weights_grow_in_proportion_to_the_bags(n_folds: int) -> None:
    fitted, found, _ = extrapolated(0.5, full=0.8, without=0.8, n_folds=n_folds)
    assert found.weights == pytest.approx(fitted.weights * n_folds / (n_folds - 1))


def test_where_fits_without_a_fold_failed_confidence_rises_by_what_the_others_lack() -> None:
    known, label = sets_and_labels()
    fitted, found, held_out = extrapolated(1.0, full=0.85, without=0.65)
    # All have the same confidence, and a false label is a candidate with probability 1/4.
    candidates = known.numpy() == 0
    answers = [evidence(label, 0.85, 2.0, 99)] + [evidence(label, 0.65, 2.0, 2 + k) for k in range(4)]
    right = [(candidates[np.arange(M), each.argmax(dim=1).numpy()] - 1 / 4) / (3 / 4) for each in answers]
    gain = np.empty(M)
    for bag in range(M):
        gain[bag] = right[0][bag] - np.mean([right[1 + k][bag] for k in range(4) if k != bag % 4])
    mean, error = gain.mean(), gain.std() / np.sqrt(M)
    before, after = (float(each.probabilities(*held_out).amax(dim=1).mean()) for each in (fitted, found))
    assert after - before == pytest.approx(mean * (1 - (2 * error / mean) ** 2), abs=1e-4)
    assert 0.1 < mean < 0.3
    assert found.weights[1] / found.weights[0] == pytest.approx(2 / 3)


def test_a_fit_to_all_bags_that_explains_less_is_not_trusted_less() -> None:
    fitted, found, _ = extrapolated(1.0, full=0.7, without=0.8)
    assert found.weights.tolist() == fitted.weights.tolist()


def test_however_badly_fits_failed_the_factor_is_bounded() -> None:
    fitted, found, _ = extrapolated(0.0, full=1.0, without=0.0)
    assert found.weights == pytest.approx(MOST_EXTRAPOLATION * fitted.weights)


def test_sets_of_all_classes_change_nothing() -> None:
    known, label = sets_and_labels()
    zero, some = Stacking(np.zeros(2), 0.0), evidence(label, 1.0, 2.0, 0)
    found = extrapolate(zero, HeldOut(some, some), 0.0, some, [(some, inside(2)[0])], torch.zeros_like(known))
    assert found.weights.tolist() == [0.0, 0.0]


def test_a_bag_of_weight_two_counts_as_two_bags() -> None:
    known, label = sets_and_labels()
    weight = torch.tensor(np.random.default_rng(0).integers(1, 4, M)).double()
    copies = torch.repeat_interleave(torch.arange(M), weight.long())
    fitted = Stacking(np.array([0.6, 0.4]), 0.02)
    held_out = HeldOut(evidence(label, 0.5, 2.0, 1), evidence(label, 0.6, 2.0, 2))
    full = evidence(label, 0.9, 2.0, 3)
    others = [(evidence(label, 0.6, 2.0, 4 + k), each) for k, each in enumerate(inside(4))]
    found = extrapolate(fitted, held_out, 0.3, full, others, known, weight)
    repeated = [(log_evidence[copies], each[copies]) for log_evidence, each in others]
    expected = extrapolate(
        fitted, HeldOut(*(each[copies] for each in held_out)), 0.3, full[copies], repeated, known[copies]
    )
    assert found.weights == pytest.approx(expected.weights, rel=1e-3)


def test_the_kept_share_is_what_the_fits_have_seen_by_weight() -> None:
    assert kept_share(inside(4)) == pytest.approx(3 / 4)
    first = torch.arange(4) > 0  # one bag against three, held out in turn
    assert kept_share([first, ~first]) == pytest.approx(1 / 4 * 3 / 4 + 3 / 4 * 1 / 4)
    weight = torch.tensor([3.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    assert kept_share([first, ~first], weight) == pytest.approx(1 / 2)
