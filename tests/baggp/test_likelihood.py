"""Fits of the bag likelihood: what they find, and that fits which share their passes do not meet."""

from __future__ import annotations

import math

import pytest
import torch
from baggp_blocks import block_of, blocks_of, generator, make_block, random_candidates

from mipl.baggp import likelihood
from mipl.baggp.constants import STAGES
from mipl.baggp.likelihood import Problem, fit_bag_likelihoods
from mipl.baggp.model import Expert


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
    ((model, _),) = fit_bag_likelihoods(blocks_of(block), [Problem(eigenvalues, prior, candidates)])
    best = model.logits(block.features).reshape(60, 4, q)
    assert (best.amax(dim=1).argmax(dim=1) == label).all()
    assert (best.gather(2, label[:, None, None].expand(60, 4, 1)).argmax(dim=1).flatten() == 0).all()


def test_logits_are_moderated_by_the_posterior_variance_of_the_weights() -> None:
    features = torch.randn(40, 3, generator=generator())
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    features = features @ Q.float()
    prior = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()
    block = block_of(features, torch.tensor([0, 20, 40]))
    problem = Problem(eigenvalues, prior, prior > 0)
    ((model, _),) = fit_bag_likelihoods(blocks_of(block), [problem], stages=STAGES[:1])
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
    problems, alone = [], []
    for i, inside in enumerate(masks):
        prior = torch.where(candidates, torch.rand(9, 3, generator=generator(i), dtype=torch.float64) + 0.1, 0.0)
        prior /= prior.sum(dim=1, keepdim=True)
        chosen = torch.ones(9, dtype=torch.bool) if inside is None else inside
        rows = torch.repeat_interleave(chosen, offsets.diff())
        own = features[rows]
        block = block_of(own, torch.cat([torch.zeros(1, dtype=torch.int64), offsets.diff()[chosen].cumsum(0)]))
        diagonal = own.square().sum(dim=0)
        problems.append(Problem(diagonal, prior, candidates, inside))
        alone += fit_bag_likelihoods(blocks_of(block), [Problem(diagonal, prior[chosen], candidates[chosen])])
    for together, (expert, _) in zip(fit_bag_likelihoods(blocks, problems), alone, strict=True):
        torch.testing.assert_close(together.expert.coef, expert.coef, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(together.expert.class_offset, expert.class_offset, rtol=1e-6, atol=1e-6)
        read = torch.cat([Expert.read(block, expert) for block in (first, second)])  # bags outside too
        torch.testing.assert_close(together.log_evidence, read, rtol=1e-5, atol=1e-5)


def test_fits_of_many_classes_share_no_pass_so_that_memory_is_that_of_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks, candidates = blocks_of(make_block([1, 4, 3, 6, 2], seed=1)), random_candidates(5, 300)
    diagonal = torch.ones(6, dtype=torch.float64)
    prior = candidates / candidates.sum(dim=1, keepdim=True).double()
    problems = [Problem(diagonal, prior, candidates, inside) for inside in (None, torch.arange(5) < 3)]
    columns, steps = [], likelihood._fit_together

    def counted(blocks, problems, *args):
        columns.append(len(problems) * problems[0].prior.shape[1])
        return steps(blocks, problems, *args)

    monkeypatch.setattr(likelihood, "_fit_together", counted)
    found = fit_bag_likelihoods(blocks, problems, stages=STAGES[:2])
    assert columns == [300, 300]
    monkeypatch.setattr(likelihood, "SHARED_COLUMNS", 1000)
    for one, other in zip(found, fit_bag_likelihoods(blocks, problems, stages=STAGES[:2]), strict=True):
        torch.testing.assert_close(one.expert.coef, other.expert.coef, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(one.log_evidence, other.log_evidence, rtol=1e-5, atol=1e-5)
    assert columns == [300, 300, 600]
