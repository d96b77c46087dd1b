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
