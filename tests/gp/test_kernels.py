"""Kernel matrices in tiles against dense ones by GPyTorch."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch

from mipl.gp.distances import distances
from mipl.gp.kernels import (
    KernelMatrix,
    MaternMatrix,
    cross_kernel,
    is_scaled_matern,
    kernel_matrix,
    scaled_matern,
)

N, D = 50, 3
EVERYTHING, K_ALONE, NOTHING = 1e9, N * N * 8 * 2, 0


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tiles a side, the last one narrower."""
    monkeypatch.setattr("mipl.gp.kernels.TILE_ROWS", {"cpu": 16, "cuda": 16})


@pytest.fixture(name="X")
def instances() -> Any:
    return torch.tensor(np.random.default_rng(0).normal(size=(N, D)))


def general() -> Any:
    kernel = gpytorch.kernels.RBFKernel(ard_num_dims=D) + gpytorch.kernels.LinearKernel()
    return gpytorch.kernels.ScaleKernel(kernel).double()


def matern(nu: float = 2.5) -> Any:
    return scaled_matern(nu, 1.3, 2.1).double()


def bound(kernel: Any, X: Any, memory_budget: float) -> KernelMatrix:
    K = kernel_matrix(kernel, X, memory_budget)
    K.update()
    return K


KERNELS = pytest.mark.parametrize("kernel", [matern(0.5), matern(1.5), matern(2.5), general()], ids=str)
BUDGETS = pytest.mark.parametrize("budget", [EVERYTHING, K_ALONE, NOTHING])


@KERNELS
@BUDGETS
def test_products_rows_and_diagonal_are_those_of_the_dense_matrix(X: Any, kernel: Any, budget: float) -> None:
    K = bound(kernel, X, budget)
    expected = kernel(X).to_dense().detach()
    V = torch.randn(7, N, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(K.dense(), expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(K.multiply(V), V @ expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(torch.stack([K.row(i) for i in range(N)]), expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(K.diagonal(), expected.diagonal(), atol=1e-10, rtol=0)


@KERNELS
@BUDGETS
def test_gradients_are_those_of_autograd_on_the_dense_matrix(X: Any, kernel: Any, budget: float) -> None:
    K = bound(kernel, X, budget)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 5, N, dtype=torch.float64, generator=generator)
    W = x.T @ y + y.T @ x

    def expected(form: Any) -> Any:
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(form(kernel(X).to_dense()), K.parameters)])

    torch.testing.assert_close(K.gradient(W), expected(lambda dense: (W * dense).sum()), rtol=1e-8, atol=1e-8)
    groups = K.form_gradients(x, K.multiply(x), y, [2, 3])
    for group, rows in zip(groups, (slice(0, 2), slice(2, 5)), strict=True):
        form = expected(lambda dense, rows=rows: (x[rows] @ dense * y[rows]).sum())
        torch.testing.assert_close(group, form, rtol=1e-8, atol=1e-8)


def test_the_memory_budget_decides_what_is_kept(X: Any) -> None:
    everything, K_alone, nothing = (bound(matern(), X, budget) for budget in (EVERYTHING, K_ALONE, NOTHING))
    assert isinstance(everything, MaternMatrix)
    assert len(everything.distances) == len(everything.derivatives) == len(everything.tiles) == 10
    assert not K_alone.distances
    assert len(K_alone.tiles) == 10
    assert not nothing.tiles


@KERNELS
def test_an_update_takes_over_changed_parameters(X: Any, kernel: Any) -> None:
    K = bound(kernel, X, EVERYTHING)
    before = kernel.outputscale.item()
    try:
        kernel.outputscale = 2 * before
        K.update()
        torch.testing.assert_close(K.dense(), kernel(X).to_dense().detach(), atol=1e-10, rtol=0)
    finally:
        kernel.outputscale = before


@KERNELS
def test_the_cross_kernel_is_that_of_gpytorch(X: Any, kernel: Any) -> None:
    new = X[:9] + 0.5
    torch.testing.assert_close(cross_kernel(kernel, new, X), kernel(new, X).to_dense().detach(), atol=1e-10, rtol=0)


def test_near_duplicates_far_from_the_origin_keep_their_distance() -> None:
    A = torch.tensor([[1000.0], [1000.01]])
    expected = scaled_matern(0.5, 0.01, 1.0)(A.double() - 1000).to_dense()
    torch.testing.assert_close(cross_kernel(scaled_matern(0.5, 0.01, 1.0), A, A).double(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "kernel",
    [
        gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=D)),
        gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, active_dims=(0, 1))),
        gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
        gpytorch.kernels.MaternKernel(nu=2.5),
    ],
    ids=["ard", "some features", "rbf", "no outputscale"],
)
def test_only_the_isotropic_scaled_matern_takes_the_closed_form(X: Any, kernel: Any) -> None:
    assert not is_scaled_matern(kernel)
    assert is_scaled_matern(matern())
    assert type(kernel_matrix(kernel.double(), X, EVERYTHING)) is KernelMatrix


@BUDGETS
def test_values_alone_are_those_beside_derivatives(X: Any, budget: float) -> None:
    kernel = matern()
    alone, both = kernel_matrix(kernel, X, budget), bound(kernel, X, budget)
    alone.update(derivatives=False)
    torch.testing.assert_close(alone.dense(), both.dense())
    assert isinstance(alone, MaternMatrix)
    assert not alone.distances
    kernel.outputscale = 0.7
    for K in (alone, both):
        K.update()
    W = torch.ones(N, N, dtype=torch.float64)
    torch.testing.assert_close(alone.gradient(W), both.gradient(W))


@pytest.mark.parametrize("size", [1e8, 1e19, 3e38])
def test_one_wild_value_leaves_the_distances_of_the_others(X: Any, size: float) -> None:
    wild = X.clone()
    wild[7, 1] = size
    others = torch.arange(N) != 7
    expected = matern()(X[others]).to_dense()
    K = bound(matern(), wild, EVERYTHING).dense()
    torch.testing.assert_close(K[others][:, others], expected)
    torch.testing.assert_close(cross_kernel(matern(), wild[others], wild)[:, others], expected)
    assert (K[7, others] < 1e-9).all()


def test_near_duplicates_far_from_the_origin_are_kept_apart_in_single_precision() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(50, 40, generator=generator)
    near = rows + 1e-4 * torch.randn(50, 40, generator=generator)
    exact = torch.cdist(rows.double(), near.double(), compute_mode="donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(distances(rows, near).double(), exact, rtol=1e-4)
