"""The hybrid engine: a low-rank objective, and the exact posterior at the parameters that it leads to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dense_gp import CPU, LENGTHSCALE, OUTPUTSCALE, C, dense, distances, matern, problem

from mipl.gp.cholesky import CholeskyEngine
from mipl.gp.engine import Engine
from mipl.gp.hybrid import HybridEngine
from mipl.gp.kernels import scaled_matern
from mipl.gp.low_rank import LowRankEngine


def engines(X: Any) -> tuple[LowRankEngine, Engine]:
    options: dict[str, Any] = {"extra_noise": 0.3, "device": CPU}
    low, learner = (
        LowRankEngine(
            X, scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE), C, n_landmarks=20, seed=0, dtype=torch.float64, **options
        )
        for _ in range(2)
    )
    return low, HybridEngine(learner, lambda kernel: CholeskyEngine(X, kernel, C, memory_budget=1e9, **options))


def test_it_learns_as_the_low_rank_engine_does() -> None:
    X, y, noise = problem()
    losses = []
    for engine in engines(X):
        optimizer = torch.optim.Adam(engine.parameters(), lr=0.1)
        losses.append([])
        for _ in range(4):
            losses[-1].append(engine.evidence(y, noise, warm=True).loss)
            optimizer.step()
    np.testing.assert_array_equal(*losses)


def test_its_posterior_is_the_exact_one_at_the_learned_parameters() -> None:
    X, y, noise = problem()
    _, engine = engines(X)
    optimizer = torch.optim.Adam(engine.parameters(), lr=0.1)
    for _ in range(3):
        engine.evidence(y, noise)
        optimizer.step()
    new = X[:7] + 0.1
    posterior = engine.condition(y, noise).posterior
    mean, variance = posterior.moments(new, 3)
    _, _, A = dense(engine._low_rank, X, y, noise, 2.5)
    scale, length = engine.kernel.outputscale.item(), engine.kernel.base_kernel.lengthscale.item()
    cross = scale * matern(distances(torch.tensor(new), torch.tensor(X)), 2.5, length)
    prior = engine.mean.detach()
    solved = torch.linalg.solve(A, torch.tensor(y.T) - prior[:, None])
    np.testing.assert_allclose(mean, prior + cross @ solved.T, atol=1e-6)
    explained = torch.einsum("bi,cij,bj->bc", cross, torch.linalg.inv(A), cross)
    np.testing.assert_allclose(variance, scale - explained, atol=1e-6)
    optimizer.step()
    np.testing.assert_array_equal(posterior.moments(new, 3), (mean, variance))
