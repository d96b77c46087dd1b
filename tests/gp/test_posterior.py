"""Means and variances at new instances against the dense oracle, and from arrays alone."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from dense_gp import (
    CPU,
    LENGTHSCALE,
    OUTPUTSCALE,
    C,
    D,
    N,
    cg_engine,
    cholesky_engine,
    dense,
    distances,
    matern,
    problem,
)

from mipl.gp.kernels import scaled_matern
from mipl.gp.posterior import Posterior, PosteriorState

NEW = np.random.default_rng(1).normal(size=(30, D))


def oracle(engine: Any) -> tuple[Any, Any]:
    """Means and variances (30, C) at the new instances, dense in float64."""
    X, y, noise = problem()
    _, _, A = dense(engine, X, y, noise, 2.5)
    mean = engine.mean.detach()
    k = OUTPUTSCALE * matern(distances(torch.tensor(NEW), torch.tensor(X)), 2.5, LENGTHSCALE)
    means = [mean[c] + k @ torch.linalg.solve(A[c], torch.tensor(y[:, c]) - mean[c]) for c in range(C)]
    explained = [(k * torch.linalg.solve(A[c], k.T).T).sum(1) for c in range(C)]
    return torch.stack(means, 1), OUTPUTSCALE - torch.stack(explained, 1)


@pytest.mark.parametrize("build", [cholesky_engine, cg_engine])
def test_the_posterior_at_new_instances_equals_the_dense_oracle(build: Any) -> None:
    X, y, noise = problem()
    engine = build(X)
    mean, variance = engine.condition(y, noise).posterior.moments(NEW, batch_size=7)
    expected_mean, expected_variance = oracle(engine)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-6)


def test_lanczos_variances_bound_the_exact_ones_from_above_and_meet_them_at_full_rank() -> None:
    X, y, noise = problem()
    full, coarse = cg_engine(X, variance_rank=N), cg_engine(X, variance_rank=30)
    _, expected = oracle(full)
    _, variance = full.condition(y, noise).posterior.moments(NEW, batch_size=7)
    np.testing.assert_allclose(variance, expected, atol=1e-3)
    _, variance = coarse.condition(y, noise).posterior.moments(NEW, batch_size=7)
    assert (variance >= expected.numpy() - 1e-6).all()
    assert (variance <= OUTPUTSCALE + 1e-6).all()


@pytest.mark.parametrize("rank", [None, 30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("own_kernel", [False, True])
def test_a_posterior_is_restored_from_its_arrays(rank: int | None, dtype: Any, own_kernel: bool) -> None:
    X, y, noise = problem()

    def kernel() -> Any:
        return (
            gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()) if own_kernel else scaled_matern(2.5, 1.0, 1.0)
        )

    posterior = cg_engine(X, kernel=kernel(), variance_rank=rank, dtype=dtype).condition(y, noise).posterior
    arrays = posterior.state._asdict()
    kernel_state = arrays.pop("kernel_state")
    copies = {name: None if a is None else np.array(a) for name, a in arrays.items()}
    state = PosteriorState(**copies, kernel_state={name: np.array(a) for name, a in kernel_state.items()})
    given = kernel()
    restored = Posterior(given, state, device=CPU)
    assert restored.dtype == dtype
    np.testing.assert_array_equal(restored.moments(NEW, 8), posterior.moments(NEW, 8))
    assert torch.equal(given.raw_outputscale, kernel().raw_outputscale), "the kernel that was passed is changed"


def test_moments_do_not_depend_on_the_batches() -> None:
    X, y, noise = problem()
    posterior = cholesky_engine(X).condition(y, noise).posterior
    np.testing.assert_allclose(posterior.moments(NEW, 1), posterior.moments(NEW, 100), atol=1e-12)
