"""The landmark kernel and its features against scikit-learn and the dense kernel."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.gaussian_process.kernels import Matern

from mipl.gp.nystrom import LandmarkKernel, principal_map


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_kernel_is_scikit_learns_matern_five_halves() -> None:
    X, Z = torch.randn(30, 4, generator=generator()), torch.randn(20, 4, generator=generator(1))
    expected = Matern(length_scale=1.7, nu=2.5)(X.numpy(), Z.numpy())
    np.testing.assert_allclose(LandmarkKernel(Z, 1.7)(X), expected, atol=2e-6)


def test_features_of_full_rank_reproduce_the_kernel_at_the_landmarks() -> None:
    Z = torch.randn(40, 3, generator=generator(), dtype=torch.float64)
    phi = principal_map(Z, torch.ones(40), 1.5, rank=40)(Z)
    torch.testing.assert_close(phi @ phi.T, LandmarkKernel(Z, 1.5)(Z), atol=2e-4, rtol=0)


def test_groups_of_landmarks_far_from_each_other_keep_their_kernels() -> None:
    near = torch.randn(40, 3, generator=generator(), dtype=torch.float64)
    far = torch.cat([near, 1e13 + near])
    phi = principal_map(far, torch.ones(80), 1.5, rank=80)(far)
    assert bool(phi.isfinite().all())
    torch.testing.assert_close(phi[:40] @ phi[:40].T, LandmarkKernel(near, 1.5)(near), atol=2e-3, rtol=0)


def test_a_kernel_beside_a_landmark_that_is_far_away_is_that_without_it() -> None:
    Z = torch.randn(40, 3, generator=generator())
    expected = LandmarkKernel(Z, 1.5)(Z)
    for value in (1e6, -1e12):
        found = LandmarkKernel(torch.cat([Z, torch.full((1, 3), value)]), 1.5)(Z)
        torch.testing.assert_close(found[:, :40], expected, atol=1e-5, rtol=0)
        assert not found[:, 40].any()
