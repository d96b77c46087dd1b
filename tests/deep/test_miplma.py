"""MIPLMA's margin and loss against hand-written formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mipl.deep import MIPLMA
from mipl.deep.miplma import margin_closed_form, margin_of_batch, margin_violation


@pytest.mark.parametrize("published", [True, False])
def test_loss_and_belief_equal_a_loop_over_bags(batch, single, network, published):
    estimator = MIPLMA(
        hidden_sizes=(6,),
        margin="closed-form",
        margin_weight=0.7,
        temperature=0.4,
        squash_logits=published,
        tied_gate=published,
    )
    net = network(estimator)
    step = net.loss(batch, None)
    for i, bag in enumerate(single):
        h = net.encoder(bag.instances)
        s = net.gate(h)[:, 0]
        if len(s) > 1:
            s = (s - s.mean()) / (s.std() + estimator.min_deviation)
        a = torch.softmax(s / (math.sqrt(6) * 0.4), dim=0)
        logits = net.classifier.weight @ (a @ h) + net.classifier.bias
        p = torch.softmax(torch.sigmoid(logits) if published else logits, dim=0)
        candidates = bag.candidates[0]
        outside = p[~candidates].max() if (~candidates).any() else 0.0
        violation = 0.5 * (1 - p[candidates].max() + outside)
        pair = np.array([0.0, violation.item()])
        margin = pair.mean() / (1 - pair.std(ddof=1))
        expected = -(bag.weights[0] * p.log()).sum() + 0.7 * margin
        torch.testing.assert_close(step.loss[i], expected)
        torch.testing.assert_close(step.belief[i], p * candidates / p[candidates].sum())


def test_the_closed_form_is_mean_over_one_minus_deviation_of_zero_and_the_violation():
    for violation in np.linspace(0, 1, 11):
        pair = np.array([0.0, violation])
        expected = pair.mean() / (1 - pair.std(ddof=1))
        assert float(margin_closed_form(torch.tensor(violation))) == pytest.approx(expected, rel=1e-12)


def test_the_margin_of_a_batch_is_mean_over_one_minus_deviation():
    violations = torch.tensor([0.1, 0.5, 0.2, 0.9], dtype=torch.float64)
    expected = violations.mean() / (1 - violations.numpy().std(ddof=1))
    torch.testing.assert_close(margin_of_batch(violations), expected.expand(4))


@pytest.mark.parametrize("violations", [[0.3], [0.3, 0.3]])
def test_the_margin_of_equal_violations_is_their_value_and_has_a_gradient(violations):
    tensor = torch.tensor(violations, dtype=torch.float64, requires_grad=True)
    margin = margin_of_batch(tensor)
    margin.mean().backward()
    torch.testing.assert_close(margin, tensor, atol=1e-6, rtol=0)
    assert torch.isfinite(tensor.grad).all()


def test_a_bag_whose_candidates_are_all_labels_violates_by_its_best_label_alone():
    p = torch.tensor([[0.7, 0.2, 0.1]])
    assert float(margin_violation(p, torch.ones(1, 3, dtype=torch.bool))) == pytest.approx(0.15)


def test_the_temperature_falls_to_its_bound_after_77_epochs(network):
    net = network(MIPLMA(hidden_sizes=(6,)))
    epochs = 0
    while net.temperature > 0.1:
        net.end_epoch()
        epochs += 1
    assert epochs == 77
    net.end_epoch()
    assert net.temperature == pytest.approx(0.1)
