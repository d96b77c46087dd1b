"""The Matérn kernel against scikit-learn, and its derivative against autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern

from mipl.gp.matern import NUS, decay_rate, matern, matern_and_derivative

LENGTHSCALE, OUTPUTSCALE = 1.7, 2.3


@pytest.fixture
def distances() -> Any:
    """From zero to where the kernel is below 1e-8."""
    return torch.linspace(0, 40, 400, dtype=torch.float64)[None]


def scikit_learn(distances: Any, nu: float) -> Any:
    return Matern(length_scale=LENGTHSCALE, nu=nu)(np.zeros((1, 1)), distances.numpy().T)


@pytest.mark.parametrize("nu", NUS)
def test_values_are_those_of_scikit_learn(distances: Any, nu: float) -> None:
    expected = scikit_learn(distances, nu)
    squares = (distances * decay_rate(nu, LENGTHSCALE)).square()
    np.testing.assert_allclose(matern(squares, nu, torch.empty_like(squares)), expected, rtol=1e-12)
    values, _ = matern_and_derivative(distances, nu, LENGTHSCALE, OUTPUTSCALE)
    np.testing.assert_allclose(values, OUTPUTSCALE * expected, rtol=1e-12)


@pytest.mark.parametrize("nu", NUS)
def test_the_derivative_by_the_log_lengthscale_is_that_of_autograd(distances: Any, nu: float) -> None:
    _, derivative = matern_and_derivative(distances, nu, LENGTHSCALE, OUTPUTSCALE)
    log_lengthscale = torch.tensor(np.log(LENGTHSCALE), requires_grad=True)

    def textbook(log_lengthscale: Any) -> Any:
        s = np.sqrt(2 * nu) * distances / log_lengthscale.exp()
        return OUTPUTSCALE * {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu] * torch.exp(-s)

    expected = torch.autograd.functional.jacobian(textbook, log_lengthscale)
    np.testing.assert_allclose(derivative, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("nu", NUS)
def test_float32_stays_finite_from_zero_to_huge_distances(nu: float) -> None:
    distances = torch.tensor([[0.0, 1e-30, 1.0, 1e4, 1e15]])
    values, derivative = matern_and_derivative(distances, nu, 1e-3, 1.0)
    alone = matern((distances * decay_rate(nu, 1e-3)).square(), nu, torch.empty_like(distances))
    for found in (values, derivative, alone):
        assert torch.isfinite(found).all()
        assert (found >= 0).all()
    assert values[0, 0] == alone[0, 0] == 1


@pytest.mark.parametrize("nu", NUS)
def test_results_go_into_the_memory_of_the_caller(distances: Any, nu: float) -> None:
    before = distances.clone()
    buffers = tuple(torch.empty_like(distances) for _ in range(3))
    values, derivative = matern_and_derivative(distances, nu, LENGTHSCALE, 1.0, buffers)
    assert values is buffers[0]
    assert derivative is buffers[1]
    assert torch.equal(distances, before)
    out = torch.empty_like(distances)
    assert matern(distances.square(), nu, out) is out
