"""MIVAE: what it learns, when it stops, and that it leaves torch's global generator alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from shifted_bags import shifted_bags
from sklearn.metrics import roc_auc_score

from mipl.bags import Bags
from mipl.errors import ParameterError, UnavailableError
from mipl.mil import MIVAE


def test_mivae_learns_shifted_instances_from_the_flat_layout() -> None:
    train, test = shifted_bags(2.0, seed=0, n=40), shifted_bags(2.0, seed=1, n=40)
    model = MIVAE(hidden_dim=64, latent_dim=8, max_epochs=40).fit(*train)
    assert roc_auc_score(test[1], model.decision_function(test[0])) > 0.9
    assert np.array_equal(model.decision_function(test[0]) > 0, model.predict(test[0]))


def test_mivae_keeps_the_best_epoch_and_stops_after_its_patience() -> None:
    bags, y = shifted_bags(0.0, seed=5, n=30)
    model = MIVAE(hidden_dim=64, latent_dim=8, patience=3, max_epochs=100).fit(bags, y)
    assert len(model.losses_) < 100
    assert len(model.losses_) - 1 - np.argmin(model.losses_) == 3


def test_mivae_reads_images_by_convolution_and_leaves_the_global_seed_alone() -> None:
    rng = np.random.default_rng(0)
    images = rng.random((40, 28 * 28)) * 0.1
    images[::4, :392] += 1.0
    bags = Bags(images, np.arange(0, 41, 2), instance_shape=(28, 28))
    y = np.tile([1, 0], 10)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    model = MIVAE(hidden_dim=32, latent_dim=4, max_epochs=15, patience=15, learning_rate=2e-3).fit(bags, y)
    assert any(value.ndim == 4 for value in model.weights_.values())
    assert roc_auc_score(y, model.decision_function(bags)) == 1.0
    assert torch.rand(1) == expected


def test_mivae_weights_the_loss_of_copies_as_repeated_bags_would() -> None:
    bags, y = shifted_bags(1.0, seed=6, n=4)
    copies = np.stack([1 - y, y], axis=1)
    copies[0] = (2, 1)
    literal = Bags.concatenate([bags, bags[[0, 0]]])
    labels = np.concatenate([y, [0, 0]])
    model = MIVAE(hidden_dim=16, latent_dim=4, max_epochs=1).fit(bags, y)
    network = model._network(torch.Generator())
    counted = model._held_out_loss(network, bags, copies)
    repeated = model._held_out_loss(network, literal, np.eye(2, dtype=np.int64)[labels])
    assert counted == pytest.approx(repeated, rel=1e-5)


def test_a_device_that_is_none_or_is_not_here_is_named() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=3)
    with pytest.raises(ParameterError, match="device='abc' is not a torch device"):
        MIVAE(device="abc").fit(bags, y)
    if not torch.cuda.is_available():
        with pytest.raises(UnavailableError, match="device='cuda' is not available"):
            MIVAE(device="cuda").fit(bags, y)
