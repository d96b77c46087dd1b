"""Weights of instances in all engines: whole numbers against copies of the rows, fractions against differences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from dense_gp import D, N, cg_engine, cholesky_engine, gradients, problem
from dense_low_rank import low_rank_engine, noises

NEW = np.random.default_rng(1).normal(size=(30, D))
#: All rows are landmarks: which ones k-means finds depends on the number of rows.
low_rank = partial(low_rank_engine, n_landmarks=N + 1)


@pytest.mark.parametrize(("build", "atol"), [(cholesky_engine, 1e-7), (low_rank, 1e-6)])
@pytest.mark.parametrize("structure", ["candidate sets", "rows"])
def test_a_weight_is_so_many_copies(build: Any, atol: float, structure: str) -> None:
    X, y, _ = problem()
    noise = noises()[structure]
    weight = 1 + np.arange(N) % 3
    copies = np.repeat(np.arange(N), weight)
    first = np.searchsorted(copies, np.arange(N))
    weighted, copied = build(X, weights=weight.astype(float)), build(X[copies])
    a, b = weighted.evidence(y, noise), copied.evidence(y[copies], noise[copies])
    assert a.loss == pytest.approx(b.loss, abs=atol)
    np.testing.assert_allclose(a.posterior_mean, b.posterior_mean[first], atol=atol)
    for name, gradient in gradients(weighted).items():
        np.testing.assert_allclose(gradient, gradients(copied)[name], atol=atol, err_msg=name)
    moments = weighted.condition(y, noise).posterior.moments(NEW, 8)
    np.testing.assert_allclose(moments, copied.condition(y[copies], noise[copies]).posterior.moments(NEW, 8), atol=atol)


def test_conjugate_gradients_find_what_cholesky_factors_find() -> None:
    X, y, noise = problem()
    weight = np.random.default_rng(2).uniform(0.2, 3, N)
    iterative, direct = cg_engine(X, weights=weight, n_probes=400), cholesky_engine(X, weights=weight)
    a, b = iterative.evidence(y, noise), direct.evidence(y, noise)
    np.testing.assert_allclose(a.posterior_mean, b.posterior_mean, atol=1e-7)
    np.testing.assert_allclose(gradients(iterative)["mean"], gradients(direct)["mean"], atol=1e-9)
    # Log determinants and their gradients are estimated.
    assert a.loss == pytest.approx(b.loss, abs=2e-3)
    np.testing.assert_allclose(gradients(iterative)["raw_noise"], gradients(direct)["raw_noise"], atol=1e-4)
    for p, q in zip(*(e.condition(y, noise).posterior.moments(NEW, 8) for e in (iterative, direct)), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)


@pytest.mark.parametrize("build", [cholesky_engine, low_rank_engine])
def test_the_gradient_at_fractions_is_that_of_finite_differences(build: Any) -> None:
    X, y, _ = problem()
    noise = noises()["mixed"]
    engine = build(X, weights=np.random.default_rng(2).uniform(0.2, 3, N))
    engine.evidence(y, noise)
    found = {name: p.grad.double().clone() for name, p in engine.named_parameters()}
    for name, parameter in engine.named_parameters():
        losses = []
        for step in (1e-5, -2e-5):
            with torch.no_grad():
                parameter.view(-1)[0] += step
            losses.append(engine.evidence(y, noise).loss)
        with torch.no_grad():
            parameter.view(-1)[0] += 1e-5
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(found[name].view(-1)[0].item(), abs=1e-7), name
