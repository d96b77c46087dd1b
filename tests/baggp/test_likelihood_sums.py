"""Sums of the bag likelihood against sums over labellings and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from baggp_blocks import generator, make_block, random_candidates
from scipy.optimize import check_grad

from mipl.baggp.blocks import Block
from mipl.baggp.likelihood_sums import LabelPrior, likelihood_statistics


def one_fit(block: Block, prior: torch.Tensor, W: torch.Tensor, *fixed: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Value and gradient of one fit, with weights (R, q + 1)."""
    counts = torch.ones(len(prior), 1)
    labels = LabelPrior.of(prior[:, None], (prior > 0)[:, None], counts)
    value, gradient = likelihood_statistics(block, labels, [0], W.T[None], *fixed)
    return value, gradient.T


@pytest.mark.parametrize("hold_prior", [True, False])
def test_the_gradient_of_the_bag_likelihood_equals_finite_differences(hold_prior: bool) -> None:
    block = make_block([1, 4, 3, 6, 2])
    candidates = random_candidates(5, 3)
    prior = torch.where(candidates, torch.rand(5, 3, generator=generator(2), dtype=torch.float64), 0.0)
    prior /= prior.sum(dim=1, keepdim=True)
    bias = torch.tensor([-3.0, -2.0, -3.0, -0.1], dtype=torch.float64)

    def statistics(w: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return one_fit(block, prior, torch.from_numpy(w.reshape(6, 4)), bias, math.log(2.0), hold_prior)

    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=24)
        error = check_grad(lambda w: float(statistics(w)[0]), lambda w: statistics(w)[1].numpy().ravel(), w)
        assert error < 1e-4 * np.linalg.norm(statistics(w)[1])


def test_the_bag_likelihood_is_the_sum_over_labellings() -> None:
    block = make_block([2, 3])
    bias = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64)
    W = torch.randn(6, 3, generator=generator(3), dtype=torch.float64)
    prior = torch.tensor([[0.3, 0.7], [1.0, 0.0]], dtype=torch.float64)
    p = torch.softmax(block.features @ W + bias, dim=1)
    kappa, expected = 1.5, 0.0
    for b, (low, high) in enumerate([(0, 2), (2, 5)]):
        Z = (kappa * p[low:high, :2] + p[low:high, 2:]).prod(dim=0) - p[low:high, 2].prod()
        expected -= torch.log((prior[b] * Z).sum()).item()
    value, _ = one_fit(block, prior, W, bias, math.log(kappa), False)
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_the_background_class_is_the_product_of_negatives() -> None:
    block, background = make_block([2, 3]), torch.tensor([False, True, False])
    bias = torch.tensor([-1.0, -1e3, -2.0, -0.5], dtype=torch.float64)
    W = torch.randn(6, 4, generator=generator(3), dtype=torch.float64)
    W[:, 1] = 0
    prior = torch.tensor([[0.3, 0.5, 0.2], [0.0, 0.4, 0.6]], dtype=torch.float64)
    p = torch.softmax(block.features @ W + bias, dim=1)
    expected = 0.0
    for b, (low, high) in enumerate([(0, 2), (2, 5)]):
        negative = p[low:high, 3].prod()
        Z = (p[low:high, :3] + p[low:high, 3:]).prod(dim=0) - negative
        expected -= torch.log(prior[b, 0] * Z[0] + prior[b, 1] * negative + prior[b, 2] * Z[2]).item()
    value, gradient = one_fit(block, prior, W, bias, 0.0, False, background)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    assert (gradient[:, 1] == 0).all()
