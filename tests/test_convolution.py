"""The convolution with pooling against torch's own steps, one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d, max_pool2d, relu

from mipl.convolution import PooledConvolution, channels_last


@pytest.mark.parametrize(("height", "width"), [(8, 9), (7, 6), (5, 5)])  # 3 x 3 filters leave 6 x 7, 5 x 4 and 3 x 3
@pytest.mark.parametrize("last", [True, False])
def test_outcomes_and_gradients_equal_those_of_torch(height, width, last):
    generator = torch.Generator().manual_seed(height)
    layer = PooledConvolution(2, 5, 3)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, generator=generator)
    if last:
        channels_last(layer)
    images = torch.randn(4, 2, height, width, generator=generator, requires_grad=True)
    expected = relu(max_pool2d(conv2d(images, layer.weight, layer.bias), 2))
    found = layer(images)
    torch.testing.assert_close(found, expected)
    slope = torch.randn(expected.shape, generator=generator)
    variables = [images, *layer.parameters()]
    for own, theirs in zip(
        torch.autograd.grad(found, variables, slope), torch.autograd.grad(expected, variables, slope), strict=True
    ):
        torch.testing.assert_close(own, theirs)


def test_of_equal_pixels_the_first_one_gets_the_gradient_as_in_torch():
    layer = PooledConvolution(1, 1, 1)
    nn.init.ones_(layer.weight)
    nn.init.ones_(layer.bias)
    images = torch.zeros(1, 1, 4, 4, requires_grad=True)
    (own,) = torch.autograd.grad(layer(images).sum(), images)
    (theirs,) = torch.autograd.grad(max_pool2d(images + 1, 2).sum(), images)
    assert torch.equal(own, theirs)
    assert own.sum() == 4
