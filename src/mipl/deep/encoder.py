"""The encoder: from one instance, an image or a row of a table, to a hidden vector."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu
from torch.nn.utils import skip_init

__all__ = ["Encoder", "convolves", "is_image", "linear", "rectify"]

Layer = TypeVar("Layer", bound=nn.Module)

#: Two 5 x 5 convolutions, each with a 2 x 2 pooling, leave one pixel of an image with sides of this length.
_MIN_SIDE = 16
_CHANNELS = (20, 50)
_KERNEL = 5
#: Where standardised features are cut off, so that sums and products of them stay numbers.
_FAR = 1e9
#: Instances that are encoded at a time, images and rows of tables: what lies between two layers stays in the cache.
_IMAGES_AT_A_TIME, _ROWS_AT_A_TIME = 128, 1024


class Encoder(nn.Module):
    """Instances (n, d) to hidden vectors (n, L): standardise, convolve if they are images, then linear layers.

    Images of at least 16 x 16 pixels pass two 5 x 5 convolutions with 20 and 50 channels, each followed by a 2 x 2 max
    pooling and ReLU; smaller images and tables go straight to the linear layers. ReLU and dropout follow every linear
    layer.

    Parameters
    ----------
    instance_shape : tuple of int
        (h, w) or (h, w, c) for images, else (d,).
    hidden_sizes : sequence of int
        Widths of the linear layers; the last one is L.
    dropout : float
        Share of hidden units left out in training.
    generator : torch.Generator
        Draws the weights; torch's global generator is not touched.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self, instance_shape: tuple[int, ...], hidden_sizes: Sequence[int], dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.instance_shape = instance_shape
        self.dropout = dropout
        width = prod(instance_shape)
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.convolutions = nn.ModuleList()
        if convolves(instance_shape):
            channels = instance_shape[2] if len(instance_shape) == 3 else 1
            for out in _CHANNELS:
                self.convolutions.append(_convolution(channels, out, generator))
                channels = out
            width = channels * prod(_after_pooling(_after_pooling(side)) for side in instance_shape[:2])
        self.layers = nn.ModuleList()
        for size in hidden_sizes:
            self.layers.append(linear(width, size, generator))
            width = size

    def standardize(self, instances: Tensor) -> None:
        """Take shift and scale from training instances (n, d): of each feature, or of all pixels of images alike."""
        over = (0, 1) if is_image(self.instance_shape) else (0,)
        deviation, mean = torch.std_mean(instances.double(), dim=over, correction=0)
        self.shift.copy_(mean.expand(self.shift.shape))
        deviation = deviation.float()  # what is smaller than a single-precision number is no deviation
        self.scale.copy_(torch.where(deviation > 0, deviation, 1.0).expand(self.scale.shape))

    def forward(self, instances: Tensor, noise: torch.Generator | None = None) -> Tensor:
        """Hidden vectors (n, L) of instances (n, d); without `noise` no unit is dropped."""
        size = len(instances)
        if instances.device.type == "cpu":
            size = _IMAGES_AT_A_TIME if self.convolutions else _ROWS_AT_A_TIME
        parts = [self._encoded(part, noise) for part in instances.split(size)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _encoded(self, instances: Tensor, noise: torch.Generator | None) -> Tensor:
        h = ((instances - self.shift) / self.scale).clamp(-_FAR, _FAR)
        if self.convolutions:
            height, width = self.instance_shape[:2]
            h = h.reshape(len(h), height, width, -1).permute(0, 3, 1, 2)  # (n, c, h, w)
            for convolution in self.convolutions:
                h = relu(max_pool2d(convolution(h), 2))
            h = h.flatten(1)
        for layer in self.layers:
            h = rectify(layer(h), self.dropout, noise)
        return h


def is_image(instance_shape: tuple[int, ...]) -> bool:
    """Whether instances of that shape are images, (h, w) or (h, w, c)."""
    return len(instance_shape) in (2, 3)


def convolves(instance_shape: tuple[int, ...]) -> bool:
    """Whether instances of that shape are images large enough for the two convolutions."""
    return is_image(instance_shape) and min(instance_shape[:2]) >= _MIN_SIDE


def rectify(values: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
    """ReLU, then zero a random `share` of values, to 1 / 65536, and scale up the rest; without `noise` ReLU alone."""
    if noise is None or share == 0:
        return relu(values)
    rectified: Tensor = _RectifyAndDrop.apply(values, share, noise)  # type: ignore[no-untyped-call]
    return rectified


class _RectifyAndDrop(torch.autograd.Function):
    """Written out because both steps together need to keep their outcome alone, which the next layer keeps anyway."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, share: float, noise: torch.Generator) -> Tensor:
        # Four draws of 16 bits in one of 64 bits: the generator is what costs.
        words = torch.empty(-(-values.numel() // 4), dtype=torch.int64, device=values.device)
        draws = words.random_(-(2**63), None, generator=noise).view(torch.int16)[: values.numel()].view(values.shape)
        kept = draws >= min(round(share * 2**16), 2**16 - 1) - 2**15
        ctx.scale = 1 / (1 - share)
        outcome = relu(values).mul_(kept).mul_(ctx.scale)
        ctx.save_for_backward(outcome)
        return outcome

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (outcome,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], outcome, 0).mul_(ctx.scale), None, None


def linear(n_in: int, n_out: int, generator: torch.Generator) -> nn.Linear:
    """A linear layer with weights and biases uniform within 1 / sqrt(n_in) of zero, torch's own rule."""
    layer: nn.Linear = skip_init(nn.Linear, n_in, n_out)
    return _uniform(layer, 1 / sqrt(n_in), generator)


def _convolution(n_in: int, n_out: int, generator: torch.Generator) -> nn.Conv2d:
    layer: nn.Conv2d = skip_init(nn.Conv2d, n_in, n_out, _KERNEL)
    return _uniform(layer, 1 / sqrt(n_in * _KERNEL**2), generator)


def _uniform(layer: Layer, bound: float, generator: torch.Generator) -> Layer:
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer


def _after_pooling(side: int) -> int:
    return (side - _KERNEL + 1) // 2
