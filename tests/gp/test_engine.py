"""The choice of an engine, and that both answer the same questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from dense_gp import CPU, C, D, problem

from mipl.gp.exact import CholeskyEngine, ConjugateGradientEngine, ExactEngine, exact_engine
from mipl.gp.kernels import scaled_matern


def build(X: Any, **params: Any) -> ExactEngine:
    options: dict[str, Any] = {
        "extra_noise": 0.3, "cholesky_size": 100, "preconditioner_size": 20, "n_probes": 40, "cg_tol": 1e-4,
        "max_cg_iter": 500, "variance_rank": None, "memory_budget": 1e9, "seed": 0, "device": CPU,
    }  # fmt: skip
    return exact_engine(X, scaled_matern(2.5, 1.7, 2.3), C, **(options | params))


@pytest.mark.parametrize(("n", "expected"), [(100, CholeskyEngine), (101, ConjugateGradientEngine)])
def test_the_number_of_distinct_instances_decides(n: int, expected: type) -> None:
    X = np.random.default_rng(0).normal(size=(n, D))
    assert type(build(X)) is expected
    assert type(build(np.tile(X, (2, 1)))) is expected


@pytest.mark.parametrize(("n", "expected"), [(200, 100), (8080, 101), (50_000, 300)])
def test_more_instances_have_a_preconditioner_of_larger_rank(n: int, expected: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 1))
    engine = build(X, preconditioner_size="auto", n_probes=1, memory_budget=0.0)
    assert isinstance(engine, ConjugateGradientEngine)
    assert engine.preconditioner_size == expected


def test_a_caller_cannot_tell_the_engines_apart_by_their_answers() -> None:
    """The loop of an estimator, with either engine: losses, parameters and moments agree."""
    X, y, noise = problem()
    results = []
    for cholesky_size in (0, len(X)):
        engine = build(X, cholesky_size=cholesky_size)
        optimizer = torch.optim.Adam(engine.parameters(), lr=0.05)
        losses = []
        for _ in range(5):
            losses.append(engine.evidence(y, noise, warm=True).loss)
            optimizer.step()
        posterior = engine.condition(y, noise).posterior
        results.append((np.array(losses), engine.mean.detach().numpy(), *posterior.moments(X[:20] + 0.1, 7)))
    for iterative, direct in zip(*results, strict=True):
        np.testing.assert_allclose(iterative, direct, atol=0.01)


@pytest.mark.parametrize("cholesky_size", [0, 1000])
def test_a_posterior_stays_what_it_is_when_learning_goes_on(cholesky_size: int) -> None:
    X, y, noise = problem()
    engine = build(X, cholesky_size=cholesky_size)
    posterior = engine.condition(y, noise).posterior
    before = posterior.moments(X[:5], 5)
    engine.evidence(y, noise)
    torch.optim.Adam(engine.parameters(), lr=0.5).step()
    np.testing.assert_array_equal(posterior.moments(X[:5], 5), before)
    assert not np.allclose(engine.condition(y, noise).posterior.moments(X[:5], 5), before)
