"""Attention with a temperature where the scores of a bag agree, which is where its gradient is longest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mipl.checks import small_problem
from mipl.deep import MIPLMA, ProMIPL


@pytest.mark.parametrize("method", [MIPLMA, ProMIPL])
def test_where_all_scores_agree_the_gradient_is_one_over_min_deviation_long(batch, network, method):
    length = {}
    for min_deviation in (1e-8, 0.1):
        net = network(method(hidden_sizes=(6,), min_deviation=min_deviation))
        with torch.no_grad():
            net.gate.out.weight.zero_()
        net.loss(batch, None).loss.sum().backward()
        length[min_deviation] = float(net.gate.out.weight.grad.norm())
    assert length[0.1] > 0
    assert length[1e-8] / length[0.1] == pytest.approx(1e7, rel=1e-6)


@pytest.mark.parametrize("method", [MIPLMA, ProMIPL])
def test_the_published_presets_keep_the_published_epsilon(method):
    assert method.paper("mnist", r=1).min_deviation == 1e-8


def test_promipl_learns_with_a_seed_that_ends_in_nan_without_a_bound_on_the_deviation():
    bags, candidates, _ = small_problem()
    model = ProMIPL(random_state=1337468387).fit(bags, candidates)
    assert np.isfinite(model.loss_).all()
    assert model.loss_[-1] < model.loss_[0]
