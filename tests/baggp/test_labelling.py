"""Similarity of bags for a class: against derivatives of the log evidence by automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mipl
from mipl.bag_posterior import bag_evidence
from mipl.baggp.labelling import class_similarities


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(14, 6, generator=generator, dtype=torch.float64)
    coef = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    variance = torch.rand(6, generator=generator, dtype=torch.float64) + 0.1
    posterior = np.array([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0, 0, 1.0], [0.1, 0, 0.9]])
    return features, coef, torch.tensor([0, 3, 7, 9, 14]), variance, posterior


def test_the_correlations_are_those_of_linearised_log_evidence(problem):
    features, coef, offsets, variance, posterior = problem
    found = class_similarities(features, features @ coef, offsets, variance, posterior)

    def log_evidence(weights):
        return bag_evidence(features @ weights, offsets).log_evidence

    derivative = torch.autograd.functional.jacobian(log_evidence, coef)  # (m, q, R, q)
    for c, (bags, values) in enumerate(found):
        assert bags.tolist() == [b for b in range(4) if 0 < posterior[b, c] < 1]
        psi = derivative[bags, c, :, c]
        covariance = psi @ torch.diag(variance) @ psi.T
        scale = covariance.diagonal().sqrt()
        np.testing.assert_allclose(values, (covariance / scale / scale[:, None]).numpy(), atol=1e-10)


def test_the_background_class_makes_no_bags_alike(problem):
    features, coef, offsets, variance, posterior = problem
    background = torch.tensor([False, True, False])
    found = class_similarities(features, features @ coef, offsets, variance, posterior, background)
    assert [len(bags) for bags, _ in found] == [3, 0, 2]


def test_a_fitted_model_orders_bags_without_their_labels_and_certain_ones_last():
    data = mipl.load("digits", r=2, seed=0)[:60]
    candidates = data.candidates.copy()
    candidates[:20] = np.eye(data.n_classes, dtype=bool)[data.labels[:20]]
    blind = mipl.MIPLDataset(data.bags, candidates, classes=data.classes)
    model = mipl.BagGP(n_landmarks=60, cross_fit=2)
    found = mipl.resolve(blind, model)
    assert found.label_order is not None
    np.testing.assert_array_equal(np.sort(found.label_order.rank), np.arange(60))
    assert found.label_order.rank[:20].min() >= 40
    assert (found.label_order.others[20:] > 0).any()
    again = model.label_order(data, found.posterior)
    np.testing.assert_array_equal(again.rank, found.label_order.rank)
    ids = [row["bag_id"] for row in found.next_to_label(5)]
    assert ids == found.bag_ids[np.argsort(found.label_order.rank)[:5]].tolist()
