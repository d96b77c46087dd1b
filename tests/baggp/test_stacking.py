"""What held-out candidate sets say of two models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mipl.baggp.model import Stacking
from mipl.baggp.stacking import fit_stacking


def bags_of(q: int, m: int, scale: float, outlier_rate: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log odds (m, q) that are right, and candidate sets of the label and one false label; some labels are random."""
    g = torch.Generator().manual_seed(0)
    log_odds = scale * torch.randn(m, q, generator=g, dtype=torch.float64)
    label = torch.multinomial(torch.softmax(log_odds, dim=1), 1, generator=g)
    anything = torch.randint(q, (m, 1), generator=g)
    label = torch.where(torch.rand(m, 1, generator=g) < outlier_rate, anything, label)
    false = (label + torch.randint(1, q, (m, 1), generator=g)) % q
    return log_odds, torch.zeros(m, q, dtype=torch.bool).scatter_(1, torch.cat([label, false], dim=1), True)


def test_a_model_that_is_right_gets_the_weight_and_one_that_guesses_none() -> None:
    right, candidates = bags_of(q=6, m=3000, scale=3.0)
    guess = 3.0 * torch.randn(right.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for models, expected in (((right, guess), [1, 0]), ((guess, right), [0, 1])):
        found = fit_stacking(*models, candidates)
        assert found.weights == pytest.approx(expected, abs=0.1)
        assert found.outlier_rate < 0.02


def test_weights_undo_an_over_confident_model() -> None:
    right, candidates = bags_of(q=6, m=3000, scale=3.0)
    found = fit_stacking(4 * right, torch.zeros_like(right), candidates)
    assert found.weights[0] == pytest.approx(0.25, abs=0.03)


def test_a_share_of_outliers_is_found() -> None:
    right, candidates = bags_of(q=6, m=3000, scale=6.0, outlier_rate=0.2)
    found = fit_stacking(right, torch.zeros_like(right), candidates)
    assert found.outlier_rate == pytest.approx(0.2, abs=0.04)
    assert found.weights[0] == pytest.approx(1.0, abs=0.15)


def test_probabilities_sum_to_one_and_never_rule_a_class_out() -> None:
    found = Stacking(np.array([1.0, 1.0]), 0.06)
    evidence = torch.tensor([[1e4, 0.0, -1e4]], dtype=torch.float64)
    P = found.probabilities(evidence, evidence)
    torch.testing.assert_close(P, torch.tensor([[0.96, 0.02, 0.02]], dtype=torch.float64), atol=1e-9, rtol=0)
