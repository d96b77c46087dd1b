"""The neural networks of MIVAE."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

__all__ = ["Gaussian", "MIVAENetwork"]

#: Two convolutions and two poolings leave at least one pixel of an image with sides of this length.
_SMALLEST_IMAGE = 11
#: Images that are encoded at a time: their feature maps stay in the cache.
_IMAGES_AT_A_TIME = 128


class Gaussian(NamedTuple):
    """Independent normal variables: mean and log variance, both (..., k)."""

    mean: Tensor
    log_variance: Tensor

    def sample(self, noise: torch.Generator) -> Tensor:
        """One draw that gradients pass through."""
        mean = self.mean
        draw = torch.randn(mean.shape, generator=noise, dtype=mean.dtype, device=mean.device)
        return mean + torch.exp(self.log_variance / 2) * draw

    def divergence(self, other: Gaussian) -> Tensor:
        """KL(self || other), summed over the last axis."""
        ratio = torch.exp(self.log_variance - other.log_variance)
        shift = (self.mean - other.mean) ** 2 * torch.exp(-other.log_variance)
        return 0.5 * (ratio + shift - 1 - self.log_variance + other.log_variance).sum(dim=-1)


class MIVAENetwork(nn.Module):
    """Encoders, decoder, label prior and classifier of MIVAE.

    Instances come flat: (n, d) with the bag index (n,) of each, so that bags of any size need no padding.

    Parameters
    ----------
    instance_shape : tuple of int
        Images (h, w) of at least 11 x 11 pixels get convolutional encoders, all else fully connected ones.
    latent_dim : int
        Size of z_n and of z_B.
    hidden_dim : int
        Width of hidden layers.
    """

    def __init__(self, instance_shape: tuple[int, ...], latent_dim: int, hidden_dim: int) -> None:
        super().__init__()
        d = math.prod(instance_shape)
        self.instance_encoder = _encoder(instance_shape, latent_dim, hidden_dim)
        self.bag_encoder = _encoder(instance_shape, latent_dim, hidden_dim)
        self.decoder = nn.Sequential(nn.Linear(2 * latent_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, d))
        self.label_prior = nn.Sequential(nn.Linear(2, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 2 * latent_dim))
        self.classifier = nn.Sequential(
            nn.Linear(2 * latent_dim, hidden_dim), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(hidden_dim, 1),
        )  # fmt: skip

    def encode(self, x: Tensor, bag: Tensor, m: int) -> tuple[Gaussian, Gaussian]:
        """q(z_n | x_n) (n, latent_dim), and q(z_B | bag) (m, latent_dim), the product of its instances' Gaussians."""
        own = _gaussian(_encoded(self.instance_encoder, x))
        shared = _gaussian(_encoded(self.bag_encoder, x))
        precision = torch.exp(-shared.log_variance)
        zeros = x.new_zeros(m, precision.shape[1])
        total = zeros.index_add(0, bag, precision)
        mean = zeros.index_add(0, bag, precision * shared.mean) / total
        return own, Gaussian(mean, -torch.log(total))

    @classmethod
    def drawn(
        cls, instance_shape: tuple[int, ...], latent_dim: int, hidden_dim: int, generator: torch.Generator
    ) -> Self:
        """A network with fresh weights by torch's own rule, from a generator of its own instead of torch's."""
        with torch.device("meta"):  # where layers draw nothing
            network = cls(instance_shape, latent_dim, hidden_dim)
        network.to_empty(device="cpu")
        for layer in network.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
                assert layer.bias is not None
                bound = 1 / math.sqrt(layer.weight[0].numel())
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
            # With channels last in memory, convolutions and poolings take half the time.
            if isinstance(layer, nn.Conv2d):
                layer.weight.data = layer.weight.detach().clone(memory_format=torch.channels_last)
        return network

    def decode(
        self, z_instance: Tensor, z_bag: Tensor, bag: Tensor, noise: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Reconstructions (n, d), log-odds of instances (n,), and of bags (m,) as the largest of their instances.

        Without `noise` no hidden unit is left out.
        """
        z = torch.cat([z_instance, z_bag[bag]], dim=1)
        h = z
        for layer in self.classifier:
            h = _dropout(h, layer.p, noise) if isinstance(layer, nn.Dropout) else layer(h)
        log_odds = h.squeeze(1)
        lowest = log_odds.new_full((len(z_bag),), -torch.inf)
        return self.decoder(z), log_odds, lowest.scatter_reduce(0, bag, log_odds, "amax")

    def prior(self) -> Gaussian:
        """p(z_B | y) for y = 0 and y = 1, (2, latent_dim)."""
        weight = next(self.label_prior.parameters())
        return _gaussian(self.label_prior(torch.eye(2, dtype=weight.dtype, device=weight.device)))


def _dropout(values: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
    """Zero a random `share` of values and scale up the rest, as torch does it, but by a generator of one's own."""
    if noise is None:
        return values
    kept = torch.rand(values.shape, generator=noise, dtype=values.dtype, device=values.device).ge_(share)
    return values * kept.div_(1 - share)


def _gaussian(parameters: Tensor) -> Gaussian:
    mean, log_variance = parameters.chunk(2, dim=-1)
    return Gaussian(mean, log_variance.clamp(-8, 8))


def _encoded(encoder: nn.Sequential, x: Tensor) -> Tensor:
    """What an encoder makes of instances (n, d), of images part by part."""
    size = _IMAGES_AT_A_TIME if isinstance(encoder[0], nn.Unflatten) else len(x)
    return torch.cat([encoder(part) for part in x.split(size)])


def _encoder(instance_shape: tuple[int, ...], latent_dim: int, hidden_dim: int) -> nn.Sequential:
    if len(instance_shape) == 2 and min(instance_shape) >= _SMALLEST_IMAGE:
        h, w = (((side - 3) // 2 - 2) // 2 for side in instance_shape)
        body: list[nn.Module] = [
            nn.Unflatten(1, (1, *instance_shape)),
            nn.Conv2d(1, 32, 4), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(32, 48, 3), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(48 * h * w, hidden_dim), nn.ReLU(),
        ]  # fmt: skip
    else:
        d = math.prod(instance_shape)
        body = [nn.Linear(d, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, hidden_dim), nn.ReLU()]
    return nn.Sequential(*body, nn.Linear(hidden_dim, 2 * latent_dim))
