"""ProMIPL's loss against a loop over bags, and its draws."""

from __future__ import annotations

import math

import pytest
import torch

from mipl.deep import ProMIPL
from mipl.deep.promipl import relaxed_bernoulli


@pytest.mark.parametrize("published", [True, False])
def test_loss_and_belief_equal_a_loop_over_bags(batch, single, network, published):
    estimator = ProMIPL(
        hidden_sizes=(6,), entropy_weight=0.4, reconstruction_weight=0.9, squash_logits=published, tied_gate=published
    )
    net = network(estimator)
    step = net.loss(batch, None)  # without noise the drawn labels are their probabilities
    eps = torch.finfo(torch.float64).eps
    for i, bag in enumerate(single):
        h = net.encoder(bag.instances)
        s = net.gate(h)[:, 0]
        if len(s) > 1:
            s = (s - s.mean()) / (s.std() + estimator.min_deviation)
        z = torch.softmax(s / (math.sqrt(6) * 5), dim=0) @ h
        logits = net.classifier.weight @ z + net.classifier.bias
        p = torch.softmax(torch.sigmoid(logits) if published else logits, dim=0)
        w = bag.weights[0]
        q = (torch.sigmoid(net.inference(torch.cat([z, w]))) * w).clamp(eps, 1 - eps)
        g = net.generation(torch.cat([z, q]))
        if published:
            g = torch.sigmoid(g)
        entropy = sum(-q[c] * q[c].log() - (1 - q[c]) * (1 - q[c]).log() for c in range(4)) / 4
        expected = -(q * p.log()).sum() - 0.4 * entropy - 0.9 * (w * torch.log_softmax(g, dim=0)).sum()
        torch.testing.assert_close(step.loss[i], expected)
        inside = (g if published else g.softmax(dim=0)) * bag.candidates[0]
        torch.testing.assert_close(step.belief[i], inside / inside.sum())


def test_relaxed_draws_exceed_a_half_as_often_as_their_probability():
    q = torch.tensor([[0.05, 0.3, 0.8]]).expand(40_000, 3)
    draws = relaxed_bernoulli(q, torch.Generator().manual_seed(0))
    torch.testing.assert_close((draws > 0.5).float().mean(dim=0), q[0], atol=0.01, rtol=0)


def test_the_classifier_learns_from_the_inferred_labels_without_moving_them(batch, network):
    net = network(ProMIPL(hidden_sizes=(6,), entropy_weight=0.0, reconstruction_weight=0.0))
    net.loss(batch, None).loss.sum().backward()
    assert all(p.grad is None or (p.grad == 0).all() for p in net.inference.parameters())
    assert net.classifier.weight.grad.abs().max() > 0
