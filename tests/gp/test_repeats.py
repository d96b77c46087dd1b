"""Equal instances merged into one row of the kernel matrix, against the dense formula on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from dense_gp import CPU, LENGTHSCALE, OUTPUTSCALE, C, N, dense, distances, gradients, matern, problem

from mipl.gp.exact import ExactEngine, exact_engine
from mipl.gp.kernels import scaled_matern
from mipl.gp.repeats import find_repeats

DISTINCT = 60


def repeated() -> tuple[Any, Any, Any]:
    """The problem of the engines' tests, with 60 instances that occur up to nine times, in random order."""
    X, y, noise = problem()
    occurrence = np.random.default_rng(1).permutation(np.resize(np.repeat(np.arange(DISTINCT), [1, 3, 9] * 20), N))
    return X[occurrence], y, noise


def build(X: Any, **params: Any) -> ExactEngine:
    options: dict[str, Any] = {
        "extra_noise": 0.3, "cholesky_size": 0, "preconditioner_size": 20, "n_probes": 500, "cg_tol": 1e-6,
        "max_cg_iter": 500, "variance_rank": None, "memory_budget": 1e9, "seed": 0, "device": CPU,
    }  # fmt: skip
    engine: Any = exact_engine(X, scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE), C, **(options | params))
    with torch.no_grad():
        engine.mean += torch.linspace(-1, 1, C, dtype=torch.float64)
    return engine


@pytest.mark.parametrize(("cholesky_size", "atol"), [(DISTINCT, 1e-6), (0, 2e-3)], ids=["cholesky", "cg"])
def test_loss_gradient_and_posterior_mean_are_those_of_all_rows(cholesky_size: int, atol: float) -> None:
    X, y, noise = repeated()
    engine: Any = build(X, cholesky_size=cholesky_size)
    assert len(engine.X) == len(np.unique(X, axis=0)) < N / 3
    out = engine.evidence(y, noise)
    loss, expected, A = dense(engine, X, y, noise, 2.5)
    assert out.loss == pytest.approx(loss, abs=atol)
    for name, gradient in gradients(engine).items():
        np.testing.assert_allclose(gradient, expected[name], atol=atol, err_msg=name)
    mean = engine.mean.detach()
    K = A[0] - torch.diag(torch.tensor(noise[:, 0]) + engine.extra_noise[0].detach())
    posterior = mean[:, None] + torch.einsum("ij,cj->ci", K, torch.linalg.solve(A, torch.tensor(y.T) - mean[:, None]))
    np.testing.assert_allclose(out.posterior_mean, posterior.T, atol=1e-4)


@pytest.mark.parametrize("cholesky_size", [DISTINCT, 0], ids=["cholesky", "cg"])
def test_moments_at_new_instances_are_those_of_all_rows(cholesky_size: int) -> None:
    X, y, noise = repeated()
    engine: Any = build(X, cholesky_size=cholesky_size)
    new = X[:7] + 0.1
    mean, variance = engine.condition(y, noise).posterior.moments(new, 3)
    _, _, A = dense(engine, X, y, noise, 2.5)
    prior = engine.mean.detach()
    cross = OUTPUTSCALE * matern(distances(torch.tensor(new), torch.tensor(X)), 2.5, LENGTHSCALE)
    solved = torch.linalg.solve(A, torch.tensor(y.T) - prior[:, None])
    np.testing.assert_allclose(mean, (prior + cross @ solved.T), atol=1e-4)
    explained = torch.einsum("bi,cij,bj->bc", cross, torch.linalg.inv(A), cross)
    np.testing.assert_allclose(variance, OUTPUTSCALE - explained, atol=1e-4)


def test_few_repeats_are_left_alone() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[:5] = X[5:10]
    assert find_repeats(X) is None
    X[:20] = X[20:40]
    repeats = find_repeats(X)
    assert repeats is not None
    np.testing.assert_array_equal(X[repeats.first][repeats.distinct], X)
