"""Standardized instances against NumPy."""

from __future__ import annotations

import numpy as np

from mipl.bags import Bags
from mipl.mil.standardizer import Standardizer


def test_each_feature_has_mean_zero_and_unit_scale_and_a_constant_one_becomes_zero() -> None:
    x = np.random.default_rng(0).normal(3, 2, (40, 4)) * [1, 10, 0.1, 0]
    bags = Bags(x, [0, 15, 40])
    found = Standardizer().fit(bags, np.ones((2, 1), dtype=bool)).transform(bags)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=0), [1, 1, 1, 0], atol=1e-5)


def test_the_pixels_of_an_image_share_one_scale() -> None:
    x = np.random.default_rng(0).normal(0, 1, (40, 4)) * [1, 10, 0.1, 0]
    bags = Bags(x, [0, 15, 40], instance_shape=(2, 2))
    fitted = Standardizer().fit(bags, np.ones((2, 1), dtype=bool))
    np.testing.assert_allclose(fitted.scale_, np.sqrt(x.var(axis=0).mean()), rtol=1e-5)
