"""The bag likelihood against sums over labellings and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from baggp_blocks import block_of, blocks_of, generator, make_block, random_candidates
from scipy.optimize import check_grad

from mipl.baggp.constants import STAGES
from mipl.baggp.likelihood import LabelPrior, fit_bag_likelihood, likelihood_statistics


@pytest.mark.parametrize("hold_prior", [True, False])
def test_the_gradient_of_the_bag_likelihood_equals_finite_differences(hold_prior: bool) -> None:
    block = make_block([1, 4, 3, 6, 2])
    candidates = random_candidates(5, 3)
    prior = torch.where(candidates, torch.rand(5, 3, generator=generator(2), dtype=torch.float64), 0.0)
    labels = LabelPrior.of(prior / prior.sum(dim=1, keepdim=True), candidates)
    bias = torch.tensor([-3.0, -2.0, -3.0, -0.1], dtype=torch.float64)

    def statistics(w: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return likelihood_statistics(block, labels, torch.from_numpy(w.reshape(6, 4)), bias, math.log(2.0), hold_prior)

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
    labels = LabelPrior.of(prior, prior > 0)
    value, _ = likelihood_statistics(block, labels, W, bias, math.log(kappa), False)
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_the_bag_likelihood_finds_what_distinguishes_the_classes() -> None:
    g = generator()
    q = 2
    label = torch.arange(60) % q
    features = torch.randn(240, 5, generator=g) * 0.3
    features[torch.arange(0, 240, 4), label] += 2.0
    offsets = torch.arange(0, 241, 4)
    candidates = torch.nn.functional.one_hot(label, q).bool()
    candidates[torch.rand(60, generator=g) < 0.5] = True
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    block = block_of(features @ Q.float(), offsets)
    prior = candidates.double() / candidates.sum(dim=1, keepdim=True)
    model = fit_bag_likelihood(blocks_of(block), eigenvalues, prior, candidates)
    best = model.logits(block.features).reshape(60, 4, q)
    assert (best.amax(dim=1).argmax(dim=1) == label).all()
    assert (best.gather(2, label[:, None, None].expand(60, 4, 1)).argmax(dim=1).flatten() == 0).all()


def test_logits_are_moderated_by_the_posterior_variance_of_the_weights() -> None:
    features = torch.randn(40, 3, generator=generator())
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    features = features @ Q.float()
    prior = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()
    block = block_of(features, torch.tensor([0, 20, 40]))
    model = fit_bag_likelihood(blocks_of(block), eigenvalues, prior, prior > 0, stages=STAGES[:1])
    phi = torch.cat([features[:2], 5 * features[:1]]).double()
    mode = phi @ model.coef + model.intercept
    gram = features.double().T @ features.double()
    seen = torch.cat([features.double() @ model.coef + model.intercept, torch.zeros(40, 1)], dim=1)
    share = 1 - torch.softmax(seen, dim=1)[:, -1].mean()
    covariance = torch.linalg.inv(share**2 / 2 * gram + torch.eye(3).double() / STAGES[0].variance)
    v = (phi @ covariance @ phi.T).diagonal()
    expected = mode / torch.sqrt(1 + math.pi / 8 * v)[:, None]
    torch.testing.assert_close(model.logits(phi.float()), expected, rtol=1e-4, atol=1e-5)


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
    labels = LabelPrior.of(prior, prior > 0)
    value, gradient = likelihood_statistics(block, labels, W, bias, 0.0, False, background)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    assert (gradient[:, 1] == 0).all()
