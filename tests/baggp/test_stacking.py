"""What held-out candidate sets say of two models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from baggp_blocks import log_prior
from scipy.optimize import minimize

from mipl.baggp.constants import (
    MIXING_PRECISION,
    OUTLIER_PRECISION,
    PRIOR_OUTLIER_RATE,
    PRIOR_SCALE,
    SCALE_PRECISION,
)
from mipl.baggp.model import Stacking
from mipl.baggp.stacking import blend, fit_stacking, label_free


def bags_of(q: int, m: int, scale: float, outlier_rate: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log odds (m, q) that are right, and candidate sets of the label and one false label; some labels are random."""
    g = torch.Generator().manual_seed(0)
    log_odds = scale * torch.randn(m, q, generator=g, dtype=torch.float64)
    label = torch.multinomial(torch.softmax(log_odds, dim=1), 1, generator=g)
    anything = torch.randint(q, (m, 1), generator=g)
    label = torch.where(torch.rand(m, 1, generator=g) < outlier_rate, anything, label)
    false = (label + torch.randint(1, q, (m, 1), generator=g)) % q
    candidates = torch.zeros(m, q, dtype=torch.bool).scatter_(1, torch.cat([label, false], dim=1), True)
    return log_odds, log_prior(candidates)


def test_a_model_that_is_right_gets_the_weight_and_one_that_guesses_none() -> None:
    right, known = bags_of(q=6, m=3000, scale=3.0)
    guess = 3.0 * torch.randn(right.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for models, expected in (((right, guess), [1, 0]), ((guess, right), [0, 1])):
        found = fit_stacking(*models, known)
        assert found.weights == pytest.approx(expected, abs=0.1)
        assert found.outlier_rate < 0.02


def test_weights_undo_an_over_confident_model() -> None:
    right, known = bags_of(q=6, m=3000, scale=3.0)
    found = fit_stacking(4 * right, torch.zeros_like(right), known)
    assert found.weights[0] == pytest.approx(0.25, abs=0.03)


def test_a_share_of_outliers_is_found() -> None:
    right, known = bags_of(q=6, m=3000, scale=6.0, outlier_rate=0.2)
    found = fit_stacking(right, torch.zeros_like(right), known)
    assert found.outlier_rate == pytest.approx(0.2, abs=0.04)
    assert found.weights[0] == pytest.approx(1.0, abs=0.15)


def test_probabilities_sum_to_one_and_never_rule_a_class_out() -> None:
    found = Stacking(np.array([1.0, 1.0]), 0.06)
    evidence = torch.tensor([[1e4, 0.0, -1e4]], dtype=torch.float64)
    P = found.probabilities(evidence, evidence)
    torch.testing.assert_close(P, torch.tensor([[0.96, 0.02, 0.02]], dtype=torch.float64), atol=1e-9, rtol=0)


@pytest.mark.parametrize(("m", "q"), [(90, 3), (300, 3), (300, 10)])
def test_evidence_that_says_nothing_is_hardly_believed(m: int, q: int) -> None:
    _, known = bags_of(q=q, m=m, scale=3.0)
    confidence = []
    for seed in range(5):
        g = torch.Generator().manual_seed(seed + 10)
        noise = [5.0 * torch.randn(m, q, generator=g, dtype=torch.float64) for _ in range(2)]
        found = fit_stacking(*noise, known)
        confidence.append(found.probabilities(*noise).amax(dim=1).mean().item())
    assert np.mean(confidence) < 1 / q + 0.06


def test_where_every_set_holds_all_classes_nothing_is_claimed() -> None:
    evidence = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = fit_stacking(evidence, evidence, torch.zeros(50, 4, dtype=torch.float64))
    torch.testing.assert_close(found.probabilities(evidence, evidence), torch.full((50, 4), 0.25).double())


def test_the_label_free_score_is_that_of_the_scoring_module() -> None:
    right, known = bags_of(q=6, m=500, scale=3.0)
    P = torch.softmax(right, dim=1)
    candidates = (known == 0).numpy()
    expected = np.mean(np.log((P.numpy() * candidates).sum(axis=1)) - np.log(2 / 6))
    score = label_free(P, known)
    assert score.mean == pytest.approx(expected)
    assert 0 < score.standard_error < 0.1


def test_models_that_say_the_same_of_seen_and_unseen_bags_are_taken_at_their_word() -> None:
    log_odds, known = bags_of(q=5, m=400, scale=2.0)
    answer = torch.softmax(log_odds, dim=1)
    torch.testing.assert_close(blend(answer, answer, known), torch.softmax(log_odds + known, dim=1))


def test_an_answer_that_echoes_the_candidate_sets_counts_for_nothing_where_unseen_bags_show_chance() -> None:
    log_odds, known = bags_of(q=5, m=400, scale=2.0)
    chance = torch.full_like(known, 1 / 5)
    echo = torch.softmax(torch.where(known == 0, 3.0, 0.0) + 0.5 * log_odds, dim=1)
    torch.testing.assert_close(blend(chance, echo, known), torch.softmax(known, dim=1))


def test_a_model_that_has_seen_the_bags_counts_less_the_more_of_its_score_is_echo() -> None:
    log_odds, known = bags_of(q=5, m=2000, scale=1.0)
    unseen = torch.softmax(log_odds, dim=1)
    previous = 0.5
    for echo in (0.5, 2.0):
        seen = torch.softmax(log_odds + torch.where(known == 0, echo, 0.0), dim=1)
        ratio = label_free(unseen, known).mean / label_free(seen, known).mean
        share = 0.5 * ratio**0.5
        assert 0 < share < previous
        previous = share
        expected = torch.softmax((1 - share) * unseen.log() + share * seen.log() + known, dim=1)
        torch.testing.assert_close(blend(unseen, seen, known), expected)


def test_the_stacking_is_the_most_probable_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipl.baggp.stacking.STACKING_BAGS", 70)  # several pieces
    right, known = bags_of(q=6, m=300, scale=3.0, outlier_rate=0.1)
    other = 2 * right + torch.randn(right.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weight = torch.linspace(0.5, 1.5, 300, dtype=torch.float64)

    def log_posterior(x: np.ndarray) -> float:
        scale, share, rate = np.exp(x[0]), 1 / (1 + np.exp(-x[1])), 1 / (1 + np.exp(-x[2]))
        P = Stacking(2 * scale * np.array([1 - share, share]), float(rate)).probabilities(right, other)
        mode = np.array([np.log(PRIOR_SCALE), 0.0, np.log(PRIOR_OUTLIER_RATE / (1 - PRIOR_OUTLIER_RATE))])
        precision = np.array([SCALE_PRECISION, MIXING_PRECISION, OUTLIER_PRECISION])
        return float(weight @ torch.log((P * known.exp()).sum(dim=1))) - 0.5 * float(precision @ (x - mode) ** 2)

    expected = minimize(lambda x: -log_posterior(x), np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7}).x
    found = fit_stacking(right, other, known, weight)
    assert np.log(found.weights.sum() / 2) == pytest.approx(expected[0], abs=1e-4)
    assert np.log(found.weights[1] / found.weights[0]) == pytest.approx(expected[1], abs=1e-3)
    assert found.outlier_rate == pytest.approx(1 / (1 + np.exp(-expected[2])), abs=1e-4)
