"""The encoder: images, tables, dropout and standardisation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mipl.deep import encoder as encoder_module
from mipl.deep.encoder import Encoder, rectify


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("shape", "flat"),
    [((28, 28), 800), ((28, 28, 3), 800), ((16, 20), 100), ((8, 8), 64), ((30,), 30)],
)
def test_the_first_linear_layer_fits_the_instances(shape, flat):
    encoder = Encoder(shape, (7, 5), 0.5, generator())
    assert encoder.layers[0].in_features == flat
    n_features = int(torch.tensor(shape).prod())
    assert encoder(torch.zeros(2, n_features)).shape == (2, 5)


def test_images_pass_convolution_relu_pooling_twice():
    encoder = Encoder((20, 18, 2), (6,), 0.5, generator())
    images = torch.randn(3, 20, 18, 2, generator=generator(1))
    first, second = encoder.convolutions
    layers = nn.Sequential(
        first,
        nn.ReLU(),
        nn.MaxPool2d(2),
        second,
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        encoder.layers[0],
        nn.ReLU(),
    )
    expected = layers(images.permute(0, 3, 1, 2))
    torch.testing.assert_close(encoder(images.flatten(1)), expected)


def test_table_features_are_standardised_one_by_one_and_constant_ones_survive():
    X = torch.randn(50, 3, generator=generator()) * torch.tensor([1.0, 100.0, 0.0]) + torch.tensor([5.0, 0.0, 2.0])
    encoder = Encoder((3,), (4,), 0.0, generator())
    encoder.standardize(X)
    Z = (X - encoder.shift) / encoder.scale
    torch.testing.assert_close(Z.mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(Z.std(dim=0, correction=0), torch.tensor([1.0, 1.0, 0.0]))


def test_pixels_of_images_share_one_scale():
    X = torch.rand(20, 64, generator=generator()) * torch.arange(64)
    encoder = Encoder((8, 8), (4,), 0.0, generator())
    encoder.standardize(X)
    assert encoder.scale.unique().numel() == encoder.shift.unique().numel() == 1
    torch.testing.assert_close(encoder.scale[0], X.std(correction=0))


def test_dropout_keeps_the_mean_and_is_off_without_noise():
    ones = torch.ones(200, 200)
    dropped = rectify(ones, 0.3, generator())
    torch.testing.assert_close(dropped.unique(), torch.tensor([0, 1 / 0.7]))
    assert dropped.mean() == pytest.approx(1, abs=0.02)
    assert torch.equal(rectify(ones, 0.3, None), ones)
    assert not rectify(-ones, 0.3, None).any()


def test_dropout_draws_are_independent_of_their_neighbours():
    # Four draws share one number of the generator.
    dropped = (rectify(torch.ones(100_003), 0.25, generator()) == 0).float()
    assert dropped.mean() == pytest.approx(0.25, abs=0.006)
    for lag in (1, 2, 3, 4):
        assert (dropped[:-lag] * dropped[lag:]).mean() == pytest.approx(0.25**2, abs=0.004)


def test_gradients_pass_where_a_unit_is_positive_and_kept():
    values = torch.randn(1000, generator=generator(), requires_grad=True)
    outcome = rectify(values, 0.4, generator(1))
    slope = torch.randn(1000, generator=generator(2))
    (outcome * slope).sum().backward()
    kept = rectify(torch.ones(1000), 0.4, generator(1)) > 0
    torch.testing.assert_close(values.grad, torch.where(kept & (values > 0), slope / 0.6, 0))
    assert 0 < kept.sum() < 1000


@pytest.mark.parametrize(("shape", "size"), [((16, 16), "_IMAGES_AT_A_TIME"), ((5,), "_ROWS_AT_A_TIME")])
def test_hidden_vectors_and_gradients_are_the_same_part_by_part(monkeypatch, shape, size):
    encoder = Encoder(shape, (6,), 0.5, generator())
    X = torch.randn(11, torch.Size(shape).numel(), generator=generator(1))
    found = []
    for n_rows in (4, 100):
        monkeypatch.setattr(encoder_module, size, n_rows)
        encoder.zero_grad()
        h = encoder(X)
        h.square().sum().backward()
        found.append([h, *(parameter.grad.clone() for parameter in encoder.parameters())])
    for part_by_part, at_once in zip(*found, strict=True):
        torch.testing.assert_close(part_by_part, at_once)


def test_building_and_running_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    Encoder((28, 28), (7, 5), 0.5, generator())(torch.zeros(2, 784), generator())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_weights_start_within_the_root_of_the_fan_in():
    layer = Encoder((400,), (300,), 0.5, generator()).layers[0]
    for parameter in (layer.weight, layer.bias):
        assert parameter.abs().max() <= 1 / 20
    assert layer.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.02)
