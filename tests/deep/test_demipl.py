"""DEMIPL's loss against a loop over bags."""

from __future__ import annotations

import pytest
import torch

from mipl.deep import DEMIPL
from mipl.deep.attention import Segments
from mipl.deep.demipl import attention_entropy


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


def test_the_entropy_term_pushes_sigmoids_above_one_over_e_up_and_those_below_down():
    score = torch.logit(torch.tensor([[0.2], [0.36], [0.38], [0.5]])).requires_grad_()
    attention_entropy(score, Segments.of_sizes(torch.tensor([4]))).sum().backward()
    assert torch.equal(torch.sign(-score.grad[:, 0]), torch.tensor([-1.0, -1.0, 1.0, 1.0]))


@pytest.mark.parametrize(("dataset", "weight"), [("mnist", 1e-3), ("fmnist", 1e-3), ("birdsong", 0), ("sival", 0)])
def test_the_published_preset_has_the_entropy_term_on_images_alone(dataset, weight):
    assert [DEMIPL.paper(dataset, r).entropy_weight for r in (1, 2, 3)] == [weight] * 3


def test_the_entropy_term_turns_attention_into_a_mean(batch, network):
    net = network(DEMIPL(hidden_sizes=(6,), entropy_weight=1.0))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with torch.no_grad():
        net.gate.out.bias.zero_()
    for _ in range(300):
        optimizer.zero_grad()
        net.loss(batch, None).loss.sum().backward()
        optimizer.step()
    attention = net.scores(batch.instances, batch.segments).attention[:, 0]
    uniform = (1 / batch.segments.sizes)[batch.segments.bag].double()
    torch.testing.assert_close(attention, uniform, atol=0.02, rtol=0)
