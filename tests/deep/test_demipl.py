"""DEMIPL's loss against a loop over bags."""

from __future__ import annotations

import pytest
import torch

from mipl.deep import DEMIPL


@pytest.mark.parametrize("published", [True, False])
def test_loss_and_belief_equal_a_loop_over_bags(batch, single, network, published):
    net = network(DEMIPL(hidden_sizes=(6,), entropy_weight=0.3, squash_logits=published, tied_gate=published))
    step = net.loss(batch, None)
    for i, bag in enumerate(single):
        h = net.encoder(bag.instances)
        a = torch.sigmoid(net.gate(h)[:, 0])
        z = sum(a[j] * h[j] for j in range(len(h))) / a.sum()
        logits = net.classifier.weight @ z + net.classifier.bias
        p = torch.softmax(torch.sigmoid(logits) if published else logits, dim=0)
        expected = -(bag.weights[0] * p.log()).sum() - 0.3 * (a * a.log()).sum()
        torch.testing.assert_close(step.loss[i], expected)
        inside = p * bag.candidates[0]
        torch.testing.assert_close(step.belief[i], inside / inside.sum())


def test_attention_survives_scores_where_every_sigmoid_underflows(batch, network):
    net = network(DEMIPL(hidden_sizes=(6,))).float()
    with torch.no_grad():
        net.gate.out.bias.fill_(-500)
    scores = net.scores(batch.instances.float(), batch.segments)
    assert torch.isfinite(scores.bags).all()
    torch.testing.assert_close(scores.attention[:3].sum(), torch.tensor(1.0))
