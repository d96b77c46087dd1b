"""Unsupervised convolutional features of small images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from torch import Tensor

from mipl.compute import share_out
from mipl.errors import DataError

__all__ = ["ConvKMeans"]

_PATCHES = 40_000
_WHITENING = 0.1
#: Share of the mean variance of patches below which a patch counts as flat.
_FLAT = 1e-2
#: Length below which a white patch at unit contrast is no direction.
_SHORT = 1e-6
_LLOYD_STEPS = 10
#: Images at a time: their patches stay in the cache.
_BATCH = 64


class ConvKMeans(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Responses to filters that k-means finds among whitened patches, pooled over the image.

    Patches are brought to zero mean and unit contrast and whitened; spherical k-means on random patches of the training
    images gives `n_filters` unit vectors. An image is described by the cosine of every patch with every filter, less
    `threshold` and cut at zero, averaged over windows of `pool` x `pool` positions; the square root evens out the
    spread of these averages. No label is used.

    Parameters
    ----------
    image_shape : (height, width) or (height, width, channels), default=(28, 28)
        How a row (height * width * channels,) is read.
    n_filters : int, default=64
        How many filters are learned.
    patch : int, default=6
        Side of a patch.
    stride : int, default=2
        Pixels between neighbouring patches.
    threshold : float, default=0.25
        Cosine below which a filter does not respond.
    pool : int, default=3
        Side of the windows of positions that are averaged.
    random_state : int, default=0
        Seed of the patches that are sampled and of k-means.
    device : str, default="cpu"
        Where torch computes.

    Attributes
    ----------
    filters_ : (n_filters, patch * patch * channels)
    whitening_ : (patch * patch * channels, patch * patch * channels)
    flat_ : float
        Variance below which a patch counts as flat.

    References
    ----------
    A. Coates, A. Y. Ng, H. Lee. An analysis of single-layer networks in unsupervised feature learning. AISTATS 2011.
    """

    def __init__(
        self,
        *,
        image_shape: Sequence[int] = (28, 28),
        n_filters: int = 64,
        patch: int = 6,
        stride: int = 2,
        threshold: float = 0.25,
        pool: int = 3,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.patch = patch
        self.stride = stride
        self.threshold = threshold
        self.pool = pool
        self.random_state = random_state
        self.device = device

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the filters from images (n, d)."""
        images = np.asarray(X, dtype=np.float32)
        if int(np.prod(self.image_shape)) != images.shape[1]:
            raise DataError(f"rows of {images.shape[1]} features are no images of shape {tuple(self.image_shape)}")
        if min(self.image_shape[:2]) < self.patch:
            raise DataError(f"images of shape {tuple(self.image_shape)} are smaller than a patch of {self.patch}")
        self.n_features_in_ = images.shape[1]
        generator = torch.Generator().manual_seed(self.random_state)
        patches = self._sample(images, generator)
        self.flat_ = _FLAT * float(patches.square().mean())
        patches = _contrast(patches, self.flat_)
        covariance = patches.T @ patches / len(patches)
        values, vectors = torch.linalg.eigh(covariance.double())
        whitening = (vectors * (values + _WHITENING * values.mean() + 1e-12).rsqrt()) @ vectors.T
        self.whitening_ = whitening.float().cpu().numpy()
        white = _unit(patches @ whitening.float())
        self.filters_ = _spherical_kmeans(white, self.n_filters, generator).cpu().numpy()
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Pooled responses (n, n_filters * windows) of images (n, d)."""
        images = np.asarray(X, dtype=np.float32)
        device = torch.device(self.device)
        whitening = torch.tensor(self.whitening_, device=device)
        # White patches, whose length is needed, and their products with the filters, from one product.
        both = torch.cat([whitening, whitening @ torch.tensor(self.filters_.T.copy(), device=device)], dim=1)
        k, window = len(whitening), min(self.pool, *self._grid())

        def respond(start: int) -> Tensor:
            patches = self._patches(images[start : start + _BATCH])  # (b, positions, k)
            count = len(patches)
            patches = patches.flatten(0, 1)
            products = patches @ both
            length = products[:, :k].square().sum(dim=1, keepdim=True).sqrt_()
            # As `_contrast` and `_unit`, whose scales cancel but for patches that are flat.
            scale = torch.maximum(length, _SHORT * _deviation(patches, self.flat_))
            response = (products[:, k:] * scale.reciprocal_()).sub_(self.threshold).clamp_(min=0)
            maps = response.reshape(count, *self._grid(), -1).permute(0, 3, 1, 2)
            return torch.nn.functional.avg_pool2d(maps, window).flatten(1).sqrt_().cpu()

        return torch.cat(list(share_out(respond, range(0, len(images), _BATCH)))).numpy()

    @property
    def n_outputs(self) -> int:
        """The number of features of a transformed image."""
        window = min(self.pool, *self._grid())
        return self.n_filters * (self._grid()[0] // window) * (self._grid()[1] // window)

    def _grid(self) -> tuple[int, int]:
        height, width = ((side - self.patch) // self.stride + 1 for side in self.image_shape[:2])
        return height, width

    def _patches(self, images: NDArray[np.float32]) -> Tensor:
        """All patches (n, positions, k) of images (n, d), with zero mean."""
        shape = (*self.image_shape[:2], 1) if len(self.image_shape) == 2 else tuple(self.image_shape)
        stack = torch.tensor(images, device=self.device).reshape(-1, *shape)
        # Views (n, rows, columns, channels, patch, patch), copied once; torch's own `unfold` takes thrice as long.
        views = stack.unfold(1, self.patch, self.stride).unfold(2, self.patch, self.stride)
        patches = views.reshape(len(stack), int(np.prod(self._grid())), -1)
        return patches.sub_(patches.mean(dim=-1, keepdim=True))

    def _sample(self, images: NDArray[np.float32], generator: torch.Generator) -> Tensor:
        positions = int(np.prod(self._grid()))
        n_images = min(len(images), max(1, 4 * _PATCHES // positions))
        chosen = torch.randperm(len(images), generator=generator)[:n_images].numpy()
        patches = self._patches(images[chosen]).flatten(0, 1)
        return patches[torch.randperm(len(patches), generator=generator)[:_PATCHES].to(patches.device)]


def _deviation(patches: Tensor, flat: float) -> Tensor:
    """The standard deviation of centred patches; the variance `flat`, small against the usual one, is added."""
    return (patches.square().mean(dim=-1, keepdim=True) + (flat + 1e-12)).sqrt()


def _contrast(patches: Tensor, flat: float) -> Tensor:
    """Centred patches at unit deviation, but flat ones stay flat."""
    return patches / _deviation(patches, flat)


def _unit(rows: Tensor) -> Tensor:
    units: Tensor = rows / rows.norm(dim=-1, keepdim=True).clamp(min=_SHORT)
    return units


def _spherical_kmeans(rows: Tensor, k: int, generator: torch.Generator) -> Tensor:
    centres = rows[torch.randperm(len(rows), generator=generator)[:k].to(rows.device)]
    for _ in range(_LLOYD_STEPS):
        cosine, nearest = (rows @ centres.T).max(dim=1)
        total = torch.zeros_like(centres).index_add_(0, nearest, rows * cosine[:, None])
        centres = torch.where(total.norm(dim=1, keepdim=True) > 1e-6, _unit(total), centres)
    return centres
