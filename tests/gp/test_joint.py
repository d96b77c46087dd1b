"""Joint draws against the dense covariance, and against the samples of GPyTorch."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from dense_gp import LENGTHSCALE, OUTPUTSCALE, C, D, cg_engine, cholesky_engine, distances, matern, problem
from dense_low_rank import low_rank_engine

from mipl.gp.kernels import scaled_matern
from mipl.gp.posterior import CHOLESKY_SIZE, ROOT_RANK

MANY = np.random.default_rng(2).normal(size=(CHOLESKY_SIZE + 100, D))
FEW = MANY[:40]


def covariance(posterior: Any, X: Any) -> Any:
    """Posterior covariances (C, b, b), dense in float64."""
    train, new = torch.tensor(posterior.state.instances), torch.tensor(X)
    pairs = (train, train), (new, train), (new, new)
    K, k, prior = (OUTPUTSCALE * matern(distances(*pair), 2.5, LENGTHSCALE) for pair in pairs)
    systems = [K + torch.tensor(diagonal).diag() for diagonal in posterior.state.noise.T]
    return torch.stack([prior - k @ torch.linalg.solve(A, k.T) for A in systems])


def roots(posterior: Any, X: Any, memory_budget: float = 1e9) -> tuple[Any, Any]:
    return posterior.sampling_roots(X, 64, torch.Generator().manual_seed(0), memory_budget)


@pytest.mark.parametrize("build", [cholesky_engine, cg_engine])
def test_the_root_of_few_instances_is_that_of_their_covariance(build: Any) -> None:
    X, y, noise = problem()
    posterior = build(X).condition(y, noise).posterior
    mean, root = roots(posterior, FEW)
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), covariance(posterior, FEW), atol=1e-5)
    np.testing.assert_array_equal(mean, posterior.moments(FEW, 64)[0])


def test_the_low_rank_root_has_the_marginal_variances_of_few_instances() -> None:
    X, y, noise = problem()
    posterior = low_rank_engine(X).condition(y, noise).posterior
    _, root = roots(posterior, FEW)
    np.testing.assert_allclose(np.square(root).sum(2).T, posterior.moments(FEW, 64)[1], atol=1e-5)


def test_samples_of_many_instances_have_the_statistics_of_gpytorch() -> None:
    """Above the threshold GPyTorch samples through a root of rank 100; the variance that is left is the same."""
    X, y, noise = problem()
    posterior = cg_engine(X).condition(y, noise).posterior
    _, root = roots(posterior, MANY)
    assert root.shape == (C, len(MANY), ROOT_RANK)
    dense = covariance(posterior, MANY)
    torch.manual_seed(0)
    normal = gpytorch.distributions.MultivariateNormal(torch.zeros(C, len(MANY), dtype=torch.float64), dense)
    theirs = normal.rsample(torch.Size((4000,))).var(0)
    ours, full = np.square(root).sum(2), dense.diagonal(dim1=1, dim2=2)
    assert (ours.mean(1) < 0.8 * full.mean(1).numpy()).all(), "most directions are lost"
    np.testing.assert_allclose(ours.mean(1), theirs.mean(1), rtol=0.02)
    # Instances lose as much here as there, to what the start vector of Lanczos leaves open.
    assert np.corrcoef(ours.ravel(), theirs.numpy().ravel())[0, 1] > 0.95


@pytest.mark.parametrize("memory_budget", [0, 1e9])
def test_the_root_does_not_depend_on_what_is_kept_in_memory(memory_budget: float) -> None:
    X, y, noise = problem()
    posterior = cg_engine(X, kernel=scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE)).condition(y, noise).posterior
    np.testing.assert_allclose(roots(posterior, MANY, memory_budget)[1], roots(posterior, MANY)[1], atol=1e-6)


def test_equal_instances_have_a_root() -> None:
    X, y, noise = problem()
    posterior = cg_engine(X, dtype=torch.float32, cg_tol=1e-3).condition(y, noise).posterior
    _, root = roots(posterior, np.repeat(FEW[:3], 20, axis=0))
    assert np.isfinite(root).all()
    np.testing.assert_allclose(root[:, 0] - root[:, 19], 0, atol=0.1)


def test_counted_instances_have_the_covariance_of_one_of_their_copies() -> None:
    """Copies are more than the threshold, distinct instances fewer than Lanczos steps: nothing is lost."""
    X, y, noise = problem()
    posterior = cg_engine(X).condition(y, noise).posterior
    counts = np.random.default_rng(4).integers(15, 60, size=len(FEW))
    assert counts.sum() > CHOLESKY_SIZE
    mean, root = posterior.sampling_roots(FEW, 64, torch.Generator().manual_seed(0), 1e9, counts)
    assert root.shape == (C, len(FEW), ROOT_RANK)
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), covariance(posterior, FEW), atol=1e-5)
    np.testing.assert_array_equal(mean, posterior.moments(FEW, 64)[0])


def test_counted_instances_keep_as_much_variance_as_their_copies() -> None:
    X, y, noise = problem()
    posterior = cg_engine(X).condition(y, noise).posterior
    some, counts = MANY[:400], np.random.default_rng(4).integers(1, 5, size=400)
    copies = np.square(roots(posterior, np.repeat(some, counts, axis=0))[1]).sum(2)
    _, root = posterior.sampling_roots(some, 64, torch.Generator().manual_seed(0), 1e9, counts)
    counted = np.repeat(np.square(root).sum(2), counts, axis=1)
    np.testing.assert_allclose(counted.mean(1), copies.mean(1), rtol=0.02)
    assert np.corrcoef(counted.ravel(), copies.ravel())[0, 1] > 0.95
