"""The sparse Gaussian process against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from shifted_bags import shifted_bags

from mipl.errors import ParameterError
from mipl.mil.inducing import InducingPoints, Posterior, jaakkola


def test_inducing_features_reproduce_the_nystrom_kernel() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=20)
    points = InducingPoints(n_inducing=30, lengthscale=2.0).fit(bags, np.eye(2, dtype=bool)[y])
    features = points.transform(bags)
    x = (bags.instances - bags.instances.mean(axis=0)) / bags.instances.std(axis=0)

    def kernel(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=-1) / (2 * 2.0**2))

    z = points.points_.astype(np.float64)
    dense = kernel(x, z) @ np.linalg.solve(kernel(z, z) + 1e-6 * np.eye(30), kernel(z, x))
    assert np.abs(features @ features.T - dense).max() < 1e-5


def test_the_posterior_and_its_divergence_agree_with_dense_formulas() -> None:
    rng = np.random.default_rng(0)
    features, precision, target = rng.normal(size=(40, 6)), rng.random(40), rng.normal(size=40)
    posterior = Posterior.given(features, precision, target)
    covariance = np.linalg.inv(np.eye(6) + features.T @ np.diag(precision) @ features)
    mean = covariance @ features.T @ target
    first, second = posterior.moments(features, np.full(40, 0.1))
    assert np.allclose(posterior.mean, mean)
    assert np.allclose(first, features @ mean)
    assert np.allclose(second, (features @ mean) ** 2 + np.diag(features @ covariance @ features.T) + 0.1)
    divergence = 0.5 * (np.trace(covariance) + mean @ mean - 6 - np.linalg.slogdet(covariance)[1])
    assert posterior.divergence() == pytest.approx(divergence)


def test_the_logistic_bound_holds_everywhere_and_touches_at_xi() -> None:
    f, xi = np.meshgrid(np.linspace(-8, 8, 161), np.linspace(0, 8, 81))
    bound = -f / 2 + np.log(expit(xi)) - xi / 2 - jaakkola(xi) * (f**2 - xi**2)
    gap = np.log(expit(-f)) - bound
    assert gap.min() > -1e-12
    assert np.abs(gap[np.isclose(np.abs(f), xi)]).max() < 1e-12
    assert jaakkola(np.zeros(1)) == pytest.approx(1 / 8)


def test_every_label_has_the_same_number_of_points_and_too_few_are_refused() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=20)
    groups = np.eye(2, dtype=bool)[y]
    points = InducingPoints(n_inducing=11).fit(bags, groups)
    alone = InducingPoints(n_inducing=5).fit(bags, groups[:, :1])
    assert (len(points.points_), len(alone.points_)) == (11, 5)
    with pytest.raises(ParameterError, match="n_inducing=1 is too small: each of the 2 labels needs a point"):
        InducingPoints(n_inducing=1).fit(bags, groups)


def test_the_default_length_scale_is_the_median_distance_over_the_root_of_two() -> None:
    bags, y = shifted_bags(0.0, seed=1, n=20)  # fewer instances than the median looks at
    x = bags.instances.astype(np.float64)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1))[np.triu_indices(len(x), 1)]
    found = InducingPoints().fit(bags, np.eye(2, dtype=bool)[y]).lengthscale_
    assert found == pytest.approx(np.median(distance) / np.sqrt(2), rel=1e-5)
