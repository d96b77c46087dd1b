"""The low-rank engine against the dense formulas of its own kernel, and against the exact engine."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from dense_gp import LENGTHSCALE, OUTPUTSCALE, C, D, N, cholesky_engine, problem
from dense_low_rank import approximate_kernel, dense, low_rank_engine, noises

from mipl.errors import ParameterError
from mipl.gp.low_rank import LowRankEngine

NEW = np.random.default_rng(1).normal(size=(30, D))


@pytest.mark.parametrize("structure", noises())
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_loss_and_gradient_equal_the_dense_formula(structure: str, nu: float) -> None:
    X, y, _ = problem()
    noise = noises()[structure]
    engine = low_rank_engine(X, nu=nu)
    loss, gradient, _ = dense(engine, X, y, noise, nu)
    # A landmark on a row has distance 0, of which cancellation leaves 1e-8; that shows where nu = 1/2 has its kink.
    assert engine.evidence(y, noise).loss == pytest.approx(loss, abs=1e-9 if nu == 0.5 else 1e-11)
    for name, parameter in engine.named_parameters():
        torch.testing.assert_close(parameter.grad, gradient[name], atol=1e-9, rtol=1e-8)


def test_the_gradient_equals_finite_differences_of_the_loss() -> None:
    X, y, _ = problem()
    noise = noises()["mixed"]
    engine = low_rank_engine(X)
    engine.evidence(y, noise)
    gradients = {name: p.grad.clone() for name, p in engine.named_parameters()}
    for name, parameter in engine.named_parameters():
        for i in range(parameter.numel()):
            losses = []
            for step in (1e-5, -2e-5):
                with torch.no_grad():
                    parameter.view(-1)[i] += step
                losses.append(engine.evidence(y, noise).loss)
            with torch.no_grad():
                parameter.view(-1)[i] += 1e-5
            difference = (losses[0] - losses[1]) / 2e-5
            assert difference == pytest.approx(gradients[name].view(-1)[i].item(), abs=1e-8)


def test_new_noises_replace_those_of_the_evaluation_before() -> None:
    X, y, _ = problem()
    engine = low_rank_engine(X)
    for noise in noises().values():
        fresh = low_rank_engine(X).evidence(y, noise)
        again = engine.evidence(y, noise)
        assert again.loss == fresh.loss
        np.testing.assert_array_equal(again.posterior_mean, fresh.posterior_mean)


def test_single_precision_stays_near_double() -> None:
    X, y, _ = problem()
    noise = noises()["candidate sets"]
    double, single = low_rank_engine(X), low_rank_engine(X, dtype=torch.float32)
    assert single.evidence(y, noise).loss == pytest.approx(double.evidence(y, noise).loss, rel=1e-5)
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-3)
    np.testing.assert_allclose(
        single.condition(y, noise).posterior.moments(NEW, 8), double.condition(y, noise).posterior.moments(NEW, 8),
        atol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("structure", ["candidate sets", "rows"])
def test_moments_are_those_of_the_low_rank_process_and_the_prior_that_it_lacks(structure: str) -> None:
    X, y, _ = problem()
    noise = noises()[structure]
    engine = low_rank_engine(X)
    mean, variance = engine.condition(y, noise).posterior.moments(NEW, batch_size=7)
    _, _, A = dense(engine, X, y, noise, 2.5)
    mu = engine.mean.detach()
    k = approximate_kernel(engine, NEW, X, 2.5, LENGTHSCALE, OUTPUTSCALE)
    for c in range(C):
        expected = mu[c] + k @ torch.linalg.solve(A[c], torch.tensor(y[:, c]) - mu[c])
        np.testing.assert_allclose(mean[:, c], expected, atol=1e-7)
        explained = (k * torch.linalg.solve(A[c], k.T).T).sum(1)
        np.testing.assert_allclose(variance[:, c], OUTPUTSCALE - explained, atol=1e-7)


def test_far_instances_keep_their_prior_variance() -> None:
    X, y, noise = problem()
    _, variance = low_rank_engine(X).condition(y, noise).posterior.moments(NEW + 1e3, 8)
    np.testing.assert_allclose(variance, OUTPUTSCALE)


def test_with_all_instances_as_landmarks_the_engine_agrees_with_the_exact_one() -> None:
    """Up to the jitter of the landmarks' kernel matrix."""
    X, y, noise = problem()
    low, exact = low_rank_engine(X, n_landmarks=N + 1), cholesky_engine(X)
    a, b = low.evidence(y, noise), exact.evidence(y, noise)
    assert len(low.landmarks) == N
    assert a.loss == pytest.approx(b.loss, abs=1e-4)
    np.testing.assert_allclose(a.posterior_mean, b.posterior_mean, atol=1e-3)
    for p, q in zip(low.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, atol=1e-4, rtol=1e-3)
    for p, q in zip(*(e.condition(y, noise).posterior.moments(NEW, 8) for e in (low, exact)), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-3)


def test_a_posterior_stays_what_it_is_when_learning_goes_on() -> None:
    X, y, noise = problem()
    engine = low_rank_engine(X)
    posterior = engine.condition(y, noise).posterior
    before = posterior.moments(X[:5], 5)
    engine.evidence(y, noise)
    torch.optim.Adam(engine.parameters(), lr=0.5).step()
    np.testing.assert_array_equal(posterior.moments(X[:5], 5), before)
    assert not np.allclose(engine.condition(y, noise).posterior.moments(X[:5], 5), before)


def test_a_kernel_without_the_closed_form_is_refused_with_its_remedy() -> None:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    options: Any = {"n_landmarks": 5, "extra_noise": 0.1, "seed": 0}
    with pytest.raises(ParameterError, match=r'needs the default kernel.*engine="exact"'):
        LowRankEngine(torch.zeros(4, 2), kernel, 2, **options)
