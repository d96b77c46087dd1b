"""The default front end, chosen from the instances alone."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from mipl.bags import Bags
from mipl.features.unit_range import UnitRange
from mipl.features.unit_rows import UnitRows

__all__ = ["choose_features"]

#: On images with smaller sides a convolution has nothing to slide over.
_MIN_SIDE = 16
_CONVOLUTION_COMPONENTS = 100
_PIXEL_COMPONENTS = 50


def choose_features(bags: Bags, random_state: int = 0, device: str = "cpu") -> BaseEstimator:
    """An unfitted transformer that suits the instances of `bags`.

    Images (by `instance_shape`) get convolutional k-means features and PCA, or PCA of their pixels where they are
    smaller than 16 x 16; non-negative instances that are mostly zero, as TF-IDF is, get square roots and rows of unit
    length; everything else is scaled to [0, 1] feature by feature. Instances of any size are taken, from 1e-45 to 3e38.
    """
    shape = bags.instance_shape
    if len(shape) in (2, 3):
        return _of_images(bags, random_state, device)
    if (bags.instances >= 0).all() and np.mean(bags.instances == 0) > 0.5:
        return UnitRows(power=0.5)
    return UnitRange()


def _of_images(bags: Bags, random_state: int, device: str) -> BaseEstimator:
    # What only images need of scikit-learn takes a tenth of a second to import.
    from sklearn.pipeline import make_pipeline

    from mipl.features.common_scale import CommonScale
    from mipl.features.conv_kmeans import ConvKMeans
    from mipl.features.projection import Projection

    shape = bags.instance_shape
    if min(shape[:2]) >= _MIN_SIDE:
        convolution = ConvKMeans(image_shape=shape, random_state=random_state, device=device)
        n_components = min(_CONVOLUTION_COMPONENTS, bags.n_instances, convolution.n_outputs)
        return make_pipeline(CommonScale(), convolution, Projection(n_components, svd_solver="covariance_eigh"))
    n_components = min(_PIXEL_COMPONENTS, *bags.instances.shape)
    return make_pipeline(CommonScale(), Projection(n_components, svd_solver="covariance_eigh"))
