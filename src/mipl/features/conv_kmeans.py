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
_WHITENING = 0.5
#: Share of the mean variance of patches below which a patch counts as flat.
_FLAT = 1e-2
#: Length below which a white patch at unit contrast is no direction.
_SHORT = 1e-6
_LLOYD_STEPS = 10
#: Images at a time: their patches stay in the cache.
_BATCH = 64
#: Images on which the spread of responses and of coarse pixels is measured.
_SPREAD_IMAGES = 1000


class ConvKMeans(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Responses to filters that k-means finds among whitened patches, pooled over the image, beside its coarse pixels.

    Patches are brought to zero mean and unit contrast and whitened; spherical k-means on random patches of the training
    images gives `n_filters` unit vectors. An image is described by the cosine of every patch with every filter, less
    `threshold` and cut at zero, averaged over windows of `pool` x `pool` positions; the square root evens out the
    spread of these averages. What is bright and what is dark does not show in cosines, so pixels averaged over windows
    of `coarse` x `coarse` stand beside them, scaled to the same total variance. No label is used.

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
    threshold : float, default=0.1
        Cosine below which a filter does not respond.
    pool : int, default=3
        Side of the windows of positions that are averaged.
    coarse : int, default=4
        Side of the windows of pixels that are averaged; 0 leaves pixels out, so that the brightness and the contrast
        of an image say nothing.
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
    pixel_range_ : (float, float)
        Least and largest pixel of the training images; pixels of new images are cut off there.
    pixel_scale_ : float
        Factor of the coarse pixels.

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
        threshold: float = 0.1,
        pool: int = 3,
        coarse: int = 4,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.patch = patch
        self.stride = stride
        self.threshold = threshold
        self.pool = pool
        self.coarse = coarse
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
        if self.coarse:
            self.pixel_range_ = float(images.min()), float(images.max())
            self.pixel_scale_ = 1.0
            some = images[torch.randperm(len(images), generator=generator)[:_SPREAD_IMAGES].numpy()]
            variances = self.transform(some).var(axis=0, dtype=np.float64)
            n_pixels = self._n_coarse()
            responses, pixels = variances[:-n_pixels].sum(), variances[-n_pixels:].sum()
            if responses > 0 and pixels > 0:
                self.pixel_scale_ = float(np.sqrt(responses / pixels))
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Pooled responses and coarse pixels (n, n_outputs) of images (n, d)."""
        images = np.asarray(X, dtype=np.float32)
        device = torch.device(self.device)
        whitening = torch.tensor(self.whitening_, device=device)
        # White patches, whose length is needed, and their products with the filters, from one product.
        both = torch.cat([whitening, whitening @ torch.tensor(self.filters_.T.copy(), device=device)], dim=1)
        k, window = len(whitening), min(self.pool, *self._grid())

        def respond(start: int) -> Tensor:
            stack = self._stack(images[start : start + _BATCH])
            patches = self._patches(stack)  # (b, positions, k)
            count = len(patches)
            patches = patches.flatten(0, 1)
            products = patches @ both
            length = products[:, :k].square().sum(dim=1, keepdim=True).sqrt_()
            # As `_contrast` and `_unit`, whose scales cancel but for patches that are flat.
            scale = torch.maximum(length, _SHORT * _deviation(patches, self.flat_))
            response = (products[:, k:] * scale.reciprocal_()).sub_(self.threshold).clamp_(min=0)
            maps = response.reshape(count, *self._grid(), -1).permute(0, 3, 1, 2)
            pooled = torch.nn.functional.avg_pool2d(maps, window).flatten(1).sqrt_()
            if self.coarse:
                pixels = stack.permute(0, 3, 1, 2).clamp(*self.pixel_range_) - self.pixel_range_[0]
                pixels = torch.nn.functional.avg_pool2d(pixels, self._coarse_side()).flatten(1)
                pooled = torch.cat([pooled, pixels * self.pixel_scale_], dim=1)
            return pooled.cpu()

        return torch.cat(list(share_out(respond, range(0, len(images), _BATCH)))).numpy()

    @property
    def n_outputs(self) -> int:
        """The number of features of a transformed image."""
        window = min(self.pool, *self._grid())
        return self.n_filters * (self._grid()[0] // window) * (self._grid()[1] // window) + self._n_coarse()

    def _grid(self) -> tuple[int, int]:
        height, width = ((side - self.patch) // self.stride + 1 for side in self.image_shape[:2])
        return height, width

    def _coarse_side(self) -> int:
        return min(self.coarse, *self.image_shape[:2])

    def _n_coarse(self) -> int:
        if not self.coarse:
            return 0
        return int(np.prod([side // self._coarse_side() for side in self.image_shape[:2]] + [*self.image_shape[2:]]))

    def _stack(self, images: NDArray[np.float32]) -> Tensor:
        """Images (n, height, width, channels) of rows (n, d)."""
        shape = (*self.image_shape[:2], 1) if len(self.image_shape) == 2 else tuple(self.image_shape)
        return torch.tensor(images, device=self.device).reshape(-1, *shape)

    def _patches(self, stack: Tensor) -> Tensor:
        """All patches (n, positions, k) of images (n, height, width, channels), with zero mean."""
        # Views (n, rows, columns, channels, patch, patch), copied once; torch's own `unfold` takes thrice as long.
        views = stack.unfold(1, self.patch, self.stride).unfold(2, self.patch, self.stride)
        patches = views.reshape(len(stack), int(np.prod(self._grid())), -1)
        return patches.sub_(patches.mean(dim=-1, keepdim=True))

    def _sample(self, images: NDArray[np.float32], generator: torch.Generator) -> Tensor:
        positions = int(np.prod(self._grid()))
        n_images = min(len(images), max(1, 4 * _PATCHES // positions))
        chosen = torch.randperm(len(images), generator=generator)[:n_images].numpy()
        patches = self._patches(self._stack(images[chosen])).flatten(0, 1)
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
