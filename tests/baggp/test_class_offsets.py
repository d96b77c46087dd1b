"""Class offsets: a fixed point that pulls shares together and leaves clear bags alone."""

from __future__ import annotations

import math

import torch
from baggp_blocks import generator

from mipl.baggp.class_offsets import class_offsets


def offsets_of_one(evidence: torch.Tensor, log_prior: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    W = torch.ones(len(evidence), dtype=torch.float64) if weight is None else weight
    return class_offsets(evidence[:, None], log_prior[:, None], W[:, None])[0]


def test_class_offsets_are_the_fixed_point_of_their_equation_and_pull_shares_together() -> None:
    candidates = torch.rand(200, 4, generator=generator()) < 0.6
    candidates[:, 0] = True
    log_prior = torch.where(candidates, 0.0, -math.inf).double()
    evidence = torch.randn(200, 4, generator=generator(1), dtype=torch.float64)
    evidence[:, 1] += 2.0
    offset = offsets_of_one(evidence, log_prior)
    share = torch.softmax(evidence + log_prior + offset, dim=1).mean(dim=0)
    torch.testing.assert_close(offset, -0.9 * torch.log(4 * share), atol=1e-5, rtol=0)
    before = torch.softmax(evidence + log_prior, dim=1).mean(dim=0)
    assert share.max() - share.min() < before.max() - before.min()


def test_class_offsets_leave_clear_bags_alone() -> None:
    label = torch.tensor([0] * 60 + [1] * 10)
    evidence = 20.0 * torch.nn.functional.one_hot(label, 2).double()
    log_prior = torch.zeros(70, 2, dtype=torch.float64)
    posterior = torch.softmax(evidence + offsets_of_one(evidence, log_prior), dim=1)
    assert (posterior[torch.arange(70), label] > 0.999).all()


def test_class_offsets_count_bags_by_their_weight_and_survive_odds_beyond_double_precision() -> None:
    evidence = 3 * torch.randn(50, 4, generator=generator(), dtype=torch.float64)
    evidence[:5, 2] -= 1e4
    log_prior = torch.zeros(50, 4, dtype=torch.float64)
    twice = torch.arange(50).repeat_interleave(2)
    offset = offsets_of_one(evidence, log_prior, torch.full((50,), 2.0, dtype=torch.float64))
    torch.testing.assert_close(offset, offsets_of_one(evidence[twice], log_prior[twice]))
    share = torch.softmax(evidence + offset, dim=1).mean(dim=0)
    torch.testing.assert_close(offset, -0.9 * torch.log(4 * share), atol=1e-5, rtol=0)


def test_offsets_of_each_fit_are_those_of_its_own_bags() -> None:
    evidence = torch.randn(60, 2, 3, generator=generator(), dtype=torch.float64)
    W = torch.rand(60, 2, generator=generator(1), dtype=torch.float64) * (torch.arange(60) % 3 > 0)[:, None]
    W[:20, 1] = 0
    offset = class_offsets(evidence, torch.zeros_like(evidence), W)
    for f in range(2):
        own = W[:, f] > 0
        alone = offsets_of_one(evidence[own, f], torch.zeros(int(own.sum()), 3, dtype=torch.float64), W[own, f])
        torch.testing.assert_close(offset[f], alone)
