"""The subset engine: the evidence of some rows, and the exact posterior of all at the parameters so learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dense_gp import CPU, LENGTHSCALE, OUTPUTSCALE, C, cg_engine, cholesky_engine, dense, distances, matern, problem

from mipl.gp.cholesky import CholeskyEngine
from mipl.gp.kernels import scaled_matern
from mipl.gp.landmark_variances import landmark_features
from mipl.gp.subset import SubsetEngine

ROWS = np.arange(0, 200, 3)


def subset_engine(X: Any, n_landmarks: int | None = None) -> SubsetEngine:
    def build(rows: Any, kernel: Any, weights: Any) -> CholeskyEngine:
        return CholeskyEngine(rows, kernel, C, extra_noise=0.3, memory_budget=1e9, device=CPU, weights=weights)

    engine = SubsetEngine(build, X, scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE), ROWS, None, n_landmarks)
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
    _, _, A = dense(engine.learner, X, y, noise, 2.5)
    scale, length = engine.kernel.outputscale.item(), engine.kernel.base_kernel.lengthscale.item()
    cross = scale * matern(distances(torch.tensor(new), torch.tensor(X)), 2.5, length)
    prior = engine.mean.detach()
    solved = torch.linalg.solve(A, torch.tensor(y.T) - prior[:, None])
    np.testing.assert_allclose(mean, prior + cross @ solved.T, atol=1e-6)
    explained = torch.einsum("bi,cij,bj->bc", cross, torch.linalg.inv(A), cross)
    np.testing.assert_allclose(variance, scale - explained, atol=1e-6)
    optimizer.step()
    np.testing.assert_array_equal(posterior.moments(new, 3), (mean, variance))


def test_with_landmarks_its_means_stay_those_of_all_rows() -> None:
    X, y, noise = problem()
    posterior, exact = (subset_engine(X, M).condition(y, noise).posterior for M in (40, None))
    assert posterior.state.landmarks is not None
    assert posterior.state.landmarks.shape == (40, X.shape[1])
    new = X[:7] + 0.1
    (mean, variance), (exact_mean, exact_variance) = posterior.moments(new, 3), exact.moments(new, 3)
    np.testing.assert_array_equal(mean, exact_mean)
    assert (variance > exact_variance - 1e-4).all(), "landmarks explain more than the instances do"


def test_landmarks_as_preconditioner_do_not_change_the_solutions() -> None:
    X, y, noise = problem()
    engine = cg_engine(X)
    landmarks = landmark_features(engine.kernel, torch.tensor(X, dtype=torch.float32), 60, seed=0)
    given, alone = engine.condition(y, noise, landmarks=landmarks), engine.condition(y, noise)
    np.testing.assert_allclose(given.posterior.state.solution, alone.posterior.state.solution, atol=1e-8)
    assert given.iterations < alone.iterations
