"""The subset engine: the evidence of some rows, and the exact posterior of all at the parameters so learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dense_gp import CPU, LENGTHSCALE, OUTPUTSCALE, C, cholesky_engine, dense, distances, matern, problem

from mipl.gp.cholesky import CholeskyEngine
from mipl.gp.kernels import scaled_matern
from mipl.gp.low_rank import LowRankEngine
from mipl.gp.subset import SubsetEngine

ROWS = np.arange(0, 200, 3)


def subset_engine(X: Any, build_low_rank: Any = None) -> SubsetEngine:
    def build(rows: Any, kernel: Any, weights: Any) -> CholeskyEngine:
        return CholeskyEngine(rows, kernel, C, extra_noise=0.3, memory_budget=1e9, device=CPU, weights=weights)

    engine = SubsetEngine(build, X, scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE), ROWS, None, build_low_rank)
    with torch.no_grad():
        engine.mean += torch.linspace(-1, 1, C, dtype=torch.float64)
    return engine


def test_it_learns_as_an_exact_engine_on_the_rows_does() -> None:
    X, y, noise = problem()
    curves = []
    for engine, rows in ((subset_engine(X), slice(None)), (cholesky_engine(X[ROWS]), ROWS)):
        optimizer = torch.optim.Adam(engine.parameters(), lr=0.1)
        losses, means = [], []
        for _ in range(4):
            out = engine.evidence(y[rows], noise[rows], warm=True)
            losses.append(out.loss)
            means.append(out.posterior_mean[ROWS] if len(out.posterior_mean) == len(X) else out.posterior_mean)
            optimizer.step()
        curves.append((losses, means))
    np.testing.assert_array_equal(curves[0][0], curves[1][0])
    np.testing.assert_array_equal(curves[0][1], curves[1][1])


def test_its_posterior_is_that_of_all_rows_at_the_learned_parameters() -> None:
    X, y, noise = problem()
    engine = subset_engine(X)
    optimizer = torch.optim.Adam(engine.parameters(), lr=0.1)
    for _ in range(3):
        engine.evidence(y, noise)
        optimizer.step()
    new = X[:7] + 0.1
    posterior = engine.condition(y, noise).posterior
    mean, variance = posterior.moments(new, 3)
    _, _, A = dense(engine._learner, X, y, noise, 2.5)
    scale, length = engine.kernel.outputscale.item(), engine.kernel.base_kernel.lengthscale.item()
    cross = scale * matern(distances(torch.tensor(new), torch.tensor(X)), 2.5, length)
    prior = engine.mean.detach()
    solved = torch.linalg.solve(A, torch.tensor(y.T) - prior[:, None])
    np.testing.assert_allclose(mean, prior + cross @ solved.T, atol=1e-6)
    explained = torch.einsum("bi,cij,bj->bc", cross, torch.linalg.inv(A), cross)
    np.testing.assert_allclose(variance, scale - explained, atol=1e-6)
    optimizer.step()
    np.testing.assert_array_equal(posterior.moments(new, 3), (mean, variance))


def test_with_landmarks_its_means_stay_exact_and_its_variances_are_those_of_the_low_rank_engine() -> None:
    X, y, noise = problem()
    options: dict[str, Any] = {"n_landmarks": 40, "extra_noise": 0.3, "seed": 0, "device": CPU}

    def low_rank(kernel: Any) -> LowRankEngine:
        return LowRankEngine(X, kernel, C, **options)

    with_landmarks, without = subset_engine(X, low_rank), subset_engine(X)
    reference = low_rank(scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE))
    with torch.no_grad():
        reference.mean.copy_(without.mean)
    posterior, exact, approximate = (e.condition(y, noise).posterior for e in (with_landmarks, without, reference))
    assert posterior.state.landmarks.shape == (40, X.shape[1])
    many = np.random.default_rng(2).normal(size=(900, X.shape[1]))
    mean, variance = posterior.moments(many, 100)
    np.testing.assert_array_equal(mean, exact.moments(many, 100)[0])
    np.testing.assert_allclose(variance, approximate.moments(many, 100)[1], atol=1e-4)
    for new in (many[:40], many):
        roots = [p.sampling_roots(new, 100, torch.Generator().manual_seed(0), 1e9)[1] for p in (posterior, approximate)]
        variances = [np.square(root).sum(2) for root in roots]
        np.testing.assert_allclose(variances[0], variances[1], atol=1e-2)
