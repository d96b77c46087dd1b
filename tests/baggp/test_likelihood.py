"""Fits of the bag likelihood: what they find, and that fits which share their passes do not meet."""

from __future__ import annotations

import math

import pytest
import torch
from baggp_blocks import block_of, blocks_of, generator, make_block, random_candidates

from mipl.baggp import likelihood
from mipl.baggp.constants import STAGES
from mipl.baggp.likelihood import BagLikelihoods, fit_bag_likelihoods
from mipl.baggp.model import Expert


def fit_one(blocks, diagonal, prior, candidates, **options) -> BagLikelihoods:
    W = torch.ones(len(prior), 1, dtype=torch.float64)
    return fit_bag_likelihoods(blocks, W, diagonal[None], prior[:, None], candidates[:, None], **options)


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
    (model,) = fit_one(blocks_of(block), eigenvalues, prior, candidates).experts
    best = model.logits(block.features).reshape(60, 4, q)
    assert (best.amax(dim=1).argmax(dim=1) == label).all()
    assert (best.gather(2, label[:, None, None].expand(60, 4, 1)).argmax(dim=1).flatten() == 0).all()


def test_logits_are_moderated_by_the_posterior_variance_of_the_weights() -> None:
    features = torch.randn(40, 3, generator=generator())
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    features = features @ Q.float()
    prior = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()
    block = block_of(features, torch.tensor([0, 20, 40]))
    (model,) = fit_one(blocks_of(block), eigenvalues, prior, prior > 0, stages=STAGES[:1]).experts
    phi = torch.cat([features[:2], 5 * features[:1]]).double()
    mode = phi @ model.coef + model.intercept
    gram = features.double().T @ features.double()
    seen = torch.cat([features.double() @ model.coef + model.intercept, torch.zeros(40, 1)], dim=1)
    share = 1 - torch.softmax(seen, dim=1)[:, -1].mean()
    covariance = torch.linalg.inv(share**2 / 2 * gram + torch.eye(3).double() / STAGES[0].variance)
    v = (phi @ covariance @ phi.T).diagonal()
    expected = mode / torch.sqrt(1 + math.pi / 8 * v)[:, None]
    torch.testing.assert_close(model.logits(phi.float()), expected, rtol=1e-4, atol=1e-5)


def test_fits_that_share_passes_are_those_of_each_alone_to_its_own_bags() -> None:
    first, second = make_block([1, 4, 3, 6, 2], seed=1), make_block([2, 5, 3, 4], seed=2)
    blocks = blocks_of(first, second)
    candidates = random_candidates(9, 3)
    masks = [
        None,
        torch.arange(9) < 5,
        torch.arange(9) >= 5,
        torch.arange(9) % 3 > 0,
    ]  # whole blocks, and parts of both
    features = torch.cat([first.features, second.features])
    offsets = torch.cat([first.offsets, second.offsets[1:] + first.offsets[-1]])
    priors, diagonals, alone = [], [], []
    W = torch.stack([torch.ones(9) if inside is None else inside for inside in masks], dim=1).double()
    for i, chosen in enumerate(W.T > 0):
        prior = torch.where(candidates, torch.rand(9, 3, generator=generator(i), dtype=torch.float64) + 0.1, 0.0)
        priors.append(prior / prior.sum(dim=1, keepdim=True))
        own = features[torch.repeat_interleave(chosen, offsets.diff())]
        block = block_of(own, torch.cat([torch.zeros(1, dtype=torch.int64), offsets.diff()[chosen].cumsum(0)]))
        diagonals.append(own.square().sum(dim=0))
        alone += fit_one(blocks_of(block), diagonals[-1], priors[-1][chosen], candidates[chosen]).experts
    sets = candidates[:, None].expand(-1, len(masks), -1)
    together = fit_bag_likelihoods(blocks, W, torch.stack(diagonals), torch.stack(priors, dim=1), sets)
    for f, expert in enumerate(alone):
        torch.testing.assert_close(together.experts[f].coef, expert.coef, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(together.experts[f].class_offset, expert.class_offset, rtol=1e-6, atol=1e-6)
        read = torch.cat([Expert.read(block, expert) for block in (first, second)])  # bags outside too
        torch.testing.assert_close(together.log_evidence[:, f], read, rtol=1e-5, atol=1e-5)


def test_fits_of_many_classes_share_no_pass_so_that_memory_is_that_of_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks, candidates = blocks_of(make_block([1, 4, 3, 6, 2], seed=1)), random_candidates(5, 300)
    prior = (candidates / candidates.sum(dim=1, keepdim=True).double())[:, None].expand(-1, 2, -1)
    W = torch.stack([torch.ones(5), torch.arange(5) < 3], dim=1).double()
    given = W, torch.ones(2, 6, dtype=torch.float64), prior, candidates[:, None].expand(-1, 2, -1)
    columns, steps = [], likelihood._fit_together

    def counted(blocks, W, *args):
        columns.append(W.shape[1] * 300)
        return steps(blocks, W, *args)

    monkeypatch.setattr(likelihood, "_fit_together", counted)
    found = fit_bag_likelihoods(blocks, *given)
    assert columns == [300, 300]
    monkeypatch.setattr(likelihood, "SHARED_COLUMNS", 1000)
    other = fit_bag_likelihoods(blocks, *given)
    assert columns == [300, 300, 600]
    torch.testing.assert_close(found.log_evidence, other.log_evidence, rtol=1e-5, atol=1e-5)
