"""Linear models: the span of the samples, and coordinates in which a bound on the curvature is the identity."""

from __future__ import annotations

import numpy as np
import pytest

from mipl.pll.linear_weights import curvature_coordinates, minimize_weights, span_of_samples


@pytest.mark.parametrize("shape", [(5, 12), (12, 5)])
def test_the_span_holds_the_samples(shape):
    Z = np.random.default_rng(0).normal(size=shape)
    basis, coordinates = span_of_samples(Z)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(coordinates @ basis.T, Z, atol=1e-12)


def test_the_bound_on_the_curvature_is_the_identity_in_its_coordinates():
    design = np.random.default_rng(1).normal(size=(20, 4)) * [1, 10, 0.1, 1]
    penalty = np.array([1.0, 2.0, 3.0, 0.0])
    T = curvature_coordinates(design, 0.25, penalty)
    np.testing.assert_allclose(T.T @ (0.25 * design.T @ design + np.diag(penalty)) @ T, np.eye(4), atol=1e-10)


def test_least_squares_agree_with_the_normal_equations_whatever_the_scales():
    rng = np.random.default_rng(2)
    design, targets = rng.normal(size=(30, 4)) * [1, 1e4, 1e-3, 1], rng.normal(size=(30, 2))
    penalty = np.ones(4)

    def ridge(weights):
        residual = design @ weights - targets
        value = 0.5 * np.sum(residual**2) + 0.5 * np.sum(weights**2)
        return float(value), design.T @ residual + weights

    found = minimize_weights(
        ridge, rng.normal(size=(4, 2)), curvature_coordinates(design, 1.0, penalty), max_iter=100, tol=1e-9
    )
    expected = np.linalg.solve(design.T @ design + np.eye(4), design.T @ targets)
    np.testing.assert_allclose(found.point, expected, rtol=1e-6, atol=1e-9)
    assert found.n_iter <= 5  # in these coordinates the problem is a sphere
