"""ELIMIPL's loss against a loop over bags."""

from __future__ import annotations

import math

import pytest
import torch

from mipl.deep import ELIMIPL
from mipl.deep.elimipl import exclusion


@pytest.mark.parametrize("published", [True, False])
def test_loss_and_belief_equal_a_loop_over_bags(batch, single, network, published):
    estimator = ELIMIPL(
        hidden_sizes=(6,), sparsity_weight=0.7, exclusion_weight=1.3, squash_logits=published, tied_gate=published
    )
    net = network(estimator)
    step = net.loss(batch, None)
    for i, bag in enumerate(single):
        h = net.encoder(bag.instances)
        a = torch.softmax(net.gate(h)[:, 0] / math.sqrt(6), dim=0)
        logits = net.classifier.weight @ (a @ h) + net.classifier.bias
        p = torch.softmax(torch.sigmoid(logits) if published else logits, dim=0)
        expected = torch.zeros((), dtype=torch.float64)
        for label in range(4):
            expected = expected - bag.weights[0, label] * p[label].log()
            expected = expected + (0.7 * p[label] if bag.candidates[0, label] else -1.3 * torch.log(1 - p[label]))
        torch.testing.assert_close(step.loss[i], expected)
        inside = p * bag.candidates[0]
        torch.testing.assert_close(step.belief[i], inside / inside.sum())


def test_exclusion_stays_finite_where_a_non_candidate_is_certain():
    log_p = torch.log_softmax(torch.tensor([[200.0, 0.0, 0.0]]), dim=1).requires_grad_()
    value = exclusion(log_p, torch.tensor([[False, True, False]]))
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(log_p.grad).all()
