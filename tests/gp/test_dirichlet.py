"""Targets and noises of class weights against the moments of Gamma variables."""

from __future__ import annotations

import numpy as np

from mipl.gp.dirichlet import dirichlet_targets


def test_the_log_normal_has_the_mean_and_variance_of_the_gamma() -> None:
    weights = np.array([[0.0, 1 / 3, 0.5, 1.0]])
    y, noise = dirichlet_targets(weights, 1e-4)
    alpha = weights + 1e-4
    np.testing.assert_allclose(np.exp(y + noise / 2), alpha)
    np.testing.assert_allclose(np.expm1(noise) * np.exp(2 * y + noise), alpha)
