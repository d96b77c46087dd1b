"""Monte Carlo class probabilities against quadrature and many plain draws."""

from __future__ import annotations

import numpy as np
import pytest

from mipl.miplgp.sampling import class_probabilities, joint_class_probabilities, standard_normal_points


def test_two_classes_agree_with_numerical_quadrature() -> None:
    """With two classes, the expectation is a one-dimensional integral."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(scale=3, size=(50, 2)), rng.uniform(0, 4, size=(50, 2))
    found = class_probabilities(mean, variance, standard_normal_points(512, 2, seed=0))
    x, w = np.polynomial.hermite_e.hermegauss(101)
    gap = mean[:, :1] - mean[:, 1:] + np.sqrt(variance.sum(axis=1, keepdims=True)) * x
    expected = (w / w.sum() / (1 + np.exp(-gap))).sum(axis=1)
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_many_classes_agree_with_plain_monte_carlo() -> None:
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=(3, 27)), rng.uniform(0.5, 2, size=(3, 27))
    found = class_probabilities(mean, variance, standard_normal_points(512, 27, seed=0))
    many = class_probabilities(mean, variance, rng.standard_normal((200_000, 27)))
    np.testing.assert_allclose(found, many, atol=5e-3)


def test_probabilities_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(40, 3)), rng.uniform(0, 4, size=(40, 3))
    points = standard_normal_points(64, 3, seed=0)
    whole = class_probabilities(mean, variance, points)
    monkeypatch.setattr("mipl.miplgp.sampling.CHUNK", 7 * points.size)
    np.testing.assert_array_equal(class_probabilities(mean, variance, points), whole)


def test_joint_draws_through_diagonal_roots_are_marginal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(20, 3)), rng.uniform(0, 4, size=(20, 3))
    roots = np.stack([np.diag(np.sqrt(v)) for v in variance.T])
    draws = rng.standard_normal((3, 20, 20_000))
    found = joint_class_probabilities(mean, roots, draws)
    np.testing.assert_allclose(
        found, class_probabilities(mean, variance, standard_normal_points(4096, 3, 0)), atol=0.01
    )
    monkeypatch.setattr("mipl.miplgp.sampling.CHUNK", 7 * 3 * 20_000)
    np.testing.assert_allclose(joint_class_probabilities(mean, roots, draws), found)
