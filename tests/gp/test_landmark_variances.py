"""Variances from landmarks against the dense formula of the features, and against the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from dense_gp import LENGTHSCALE, OUTPUTSCALE, D, N, cholesky_engine, distances, matern, problem
from dense_low_rank import noises

from mipl.gp.landmark_variances import JITTER, landmark_features, with_landmark_variances
from mipl.gp.solvers import weighted_grams

NEW = np.random.default_rng(1).normal(size=(900, D))


def kernel(A: Any, B: Any) -> Any:
    return OUTPUTSCALE * matern(distances(torch.tensor(A).double(), torch.tensor(B).double()), 2.5, LENGTHSCALE)


def with_landmarks(exact: Any, n_landmarks: int) -> Any:
    X = torch.tensor(exact.state.instances, dtype=torch.float32)
    found = landmark_features(exact.kernel, X, n_landmarks, seed=0)
    return with_landmark_variances(exact, found, weighted_grams(found.features, torch.tensor(1 / exact.state.noise.T)))


def explained(posterior: Any, X: Any, new: Any) -> Any:
    """What instances X explain (C, b, b) with the kernel of the landmarks, dense in float64."""
    Z = posterior.state.landmarks
    inner = torch.linalg.inv(kernel(Z, Z) + JITTER * OUTPUTSCALE * torch.eye(len(Z)))
    K, cross = kernel(X, Z) @ inner @ kernel(Z, X), kernel(new, Z) @ inner @ kernel(Z, X)
    systems = [K + torch.tensor(diagonal).diag() for diagonal in posterior.state.noise.T]
    return torch.stack([cross @ torch.linalg.solve(A, cross.T) for A in systems])


@pytest.mark.parametrize("structure", ["candidate sets", "set sizes", "rows", "mixed"])
def test_they_are_exact_for_the_kernel_of_the_landmarks(structure: str) -> None:
    X, y, _ = problem()
    exact = cholesky_engine(X).condition(y, noises()[structure]).posterior
    posterior = with_landmarks(exact, 40)
    few = NEW[:30]
    expected = explained(posterior, X, few)
    mean, variance = posterior.moments(few, 7)
    np.testing.assert_array_equal(mean, exact.moments(few, 7)[0])
    np.testing.assert_allclose(variance.T, OUTPUTSCALE - expected.diagonal(dim1=1, dim2=2), atol=1e-4)
    # Jointly drawn instances have the covariance of the features, and their own part of the prior beside it.
    _, root = posterior.sampling_roots(few, 7, torch.Generator().manual_seed(0), 1e9)
    Z = posterior.state.landmarks
    prior = kernel(few, Z) @ torch.linalg.inv(kernel(Z, Z) + JITTER * OUTPUTSCALE * torch.eye(len(Z))) @ kernel(Z, few)
    prior.diagonal().fill_(OUTPUTSCALE)
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), prior - expected, atol=1e-3)


def test_with_all_instances_as_landmarks_they_are_the_exact_ones() -> None:
    X, y, noise = problem()
    exact = cholesky_engine(X).condition(y, noise).posterior
    variances = [p.moments(NEW, 100)[1] for p in (with_landmarks(exact, N), exact)]
    np.testing.assert_allclose(variances[0], variances[1], atol=1e-3)


def test_fewer_landmarks_explain_less() -> None:
    X, y, noise = problem()
    exact = cholesky_engine(X).condition(y, noise).posterior
    means = [with_landmarks(exact, M).moments(NEW, 100)[1].mean() for M in (5, 20, 80)]
    assert OUTPUTSCALE > means[0] > means[1] > means[2] > exact.moments(NEW, 100)[1].mean() - 1e-4
