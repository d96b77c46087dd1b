"""Both exact engines against a dense float64 oracle, GPyTorch and finite differences."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from dense_gp import LENGTHSCALE, OUTPUTSCALE, C, D, N, cg_engine, cholesky_engine, dense, gradients, problem

from mipl.gp.kernels import KernelMatrix, MaternMatrix, scaled_matern

ENGINES = pytest.mark.parametrize("build", [cholesky_engine, cg_engine])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_cholesky_loss_gradient_and_posterior_mean_equal_the_dense_oracle(nu: float) -> None:
    X, y, noise = problem()
    engine = cholesky_engine(X, nu=nu)
    out = engine.evidence(y, noise)
    loss, expected, A = dense(engine, X, y, noise, nu)
    assert out.loss == pytest.approx(loss, abs=1e-6)
    for name, gradient in gradients(engine).items():
        np.testing.assert_allclose(gradient, expected[name], atol=1e-6, err_msg=name)
    K = A[0] - torch.diag(torch.tensor(noise[:, 0]) + engine.extra_noise[0].detach())
    mean = engine.mean.detach()
    posterior = mean[:, None] + torch.einsum("ij,cj->ci", K, torch.linalg.solve(A, torch.tensor(y.T) - mean[:, None]))
    np.testing.assert_allclose(out.posterior_mean, posterior.T, atol=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_conjugate_gradients_find_the_solutions_of_the_cholesky_engine(nu: float) -> None:
    X, y, noise = problem()
    iterative, direct = cg_engine(X, nu=nu), cholesky_engine(X, nu=nu)
    out = iterative.evidence(y, noise)
    assert out.residual < 1e-10
    np.testing.assert_allclose(out.posterior_mean, direct.evidence(y, noise).posterior_mean, atol=1e-7)
    np.testing.assert_allclose(gradients(iterative)["mean"], gradients(direct)["mean"], atol=1e-9)


def test_loss_and_gradient_of_many_probes_approach_the_dense_oracle() -> None:
    X, y, noise = problem()
    engine = cg_engine(X, n_probes=500)
    out = engine.evidence(y, noise)
    loss, expected, _ = dense(engine, X, y, noise, 2.5)
    assert out.loss == pytest.approx(loss, abs=2e-3)
    for name, gradient in gradients(engine).items():
        np.testing.assert_allclose(gradient, expected[name], atol=2e-3, err_msg=name)


def test_float32_at_the_default_tolerance_is_near_the_dense_oracle() -> None:
    X, y, noise = problem()
    engine = cg_engine(X, dtype=torch.float32, cg_tol=0.01, n_probes=50)
    out = engine.evidence(y, noise)
    loss, expected, _ = dense(engine, X, y, noise, 2.5)
    assert out.residual < 0.01
    assert out.loss == pytest.approx(loss, abs=1e-2)
    for name, gradient in gradients(engine).items():
        np.testing.assert_allclose(gradient, expected[name], atol=0.01, err_msg=name)


def test_the_gradient_is_that_of_finite_differences() -> None:
    X, y, noise = problem()
    engine = cholesky_engine(X)
    engine.evidence(y, noise)
    for parameter in engine.parameters():
        gradient = parameter.grad.clone()
        for i in range(parameter.numel()):
            ends = []
            for step in (1e-5, -2e-5):
                with torch.no_grad():
                    parameter.view(-1)[i] += step
                ends.append(engine.evidence(y, noise).loss)
            with torch.no_grad():
                parameter.view(-1)[i] += 1e-5
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(gradient.view(-1)[i].item(), rel=1e-4, abs=1e-8)


def test_the_iterative_objective_is_a_function_of_parameters_and_seed() -> None:
    X, y, noise = problem()
    first, second = cg_engine(X), cg_engine(X)
    assert first.evidence(y, noise).loss == second.evidence(y, noise).loss
    assert first.evidence(y, noise).loss == second.evidence(y, noise).loss
    assert cg_engine(X, seed=1).evidence(y, noise).loss != first.evidence(y, noise).loss


@pytest.mark.parametrize(
    ("build", "atol"), [(cholesky_engine, 1e-6), (lambda X: cg_engine(X, n_probes=500), 2e-3)], ids=["cholesky", "cg"]
)
def test_loss_and_gradient_equal_those_of_gpytorch(build: Any, atol: float) -> None:
    X, y, noise = problem()
    engine = build(X)
    out = engine.evidence(y, noise)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, targets: Any, likelihood: Any) -> None:
            super().__init__(x, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=torch.Size((C,)))
            self.covar_module = scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(
        torch.tensor(noise.T.copy()), learn_additional_noise=True, batch_shape=torch.Size((C,))
    )
    likelihood.second_noise = 0.3
    model = Model(torch.tensor(X), torch.tensor(y.T.copy()), likelihood).double()
    model.mean_module.constant.data = engine.mean.detach().clone()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    loss = -mll(model(torch.tensor(X)), torch.tensor(y.T.copy())).mean()
    loss.backward()
    assert out.loss == pytest.approx(loss.item(), abs=atol)
    kernel = model.covar_module
    expected = {
        "kernel.raw_outputscale": kernel.raw_outputscale.grad,
        "kernel.base_kernel.raw_lengthscale": kernel.base_kernel.raw_lengthscale.grad,
        "mean": model.mean_module.constant.grad,
        "raw_noise": likelihood.second_noise_covar.raw_noise.grad.view(-1),
    }
    found = gradients(engine)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, atol=atol, err_msg=name)


@ENGINES
def test_any_gpytorch_kernel_can_be_learned(build: Any) -> None:
    X, y, noise = problem()
    general = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=D) + gpytorch.kernels.LinearKernel())
    engine = build(X, kernel=general)
    before = engine.evidence(y, noise).loss
    torch.optim.SGD(engine.parameters(), lr=0.1).step()
    assert engine.evidence(y, noise).loss < before


@ENGINES
def test_a_kernel_by_autograd_agrees_with_the_closed_form(build: Any) -> None:
    X, y, noise = problem()
    fast, general = build(X), build(X)
    assert isinstance(fast.K, MaternMatrix)
    general.K = KernelMatrix(general.kernel, torch.tensor(X), 1e9)
    assert fast.evidence(y, noise).loss == pytest.approx(general.evidence(y, noise).loss, abs=1e-8)
    for name, gradient in gradients(fast).items():
        np.testing.assert_allclose(gradient, gradients(general)[name], atol=1e-8, err_msg=name)


def test_a_warm_evaluation_follows_the_fresh_one_through_an_optimisation() -> None:
    X, y, noise = problem()
    warm, fresh = cg_engine(X, n_probes=40), cg_engine(X, n_probes=40)
    optimizer = torch.optim.Adam(warm.parameters(), lr=0.02)
    iterations = []
    for step in range(8):
        followed = warm.evidence(y, noise * (1 - 0.01 * step), warm=True)
        fresh.load_state_dict(warm.state_dict())
        out = fresh.evidence(y, noise * (1 - 0.01 * step))
        # The trapezoid rule has an error; the probes differ by the preconditioner they are drawn from.
        assert followed.loss == pytest.approx(out.loss, abs=2e-4)
        np.testing.assert_allclose(followed.posterior_mean, out.posterior_mean, atol=1e-7)
        for name, gradient in gradients(warm).items():
            np.testing.assert_allclose(gradient, gradients(fresh)[name], atol=2e-3, err_msg=name)
        iterations.append((followed.iterations, out.iterations))
        optimizer.step()
    assert iterations[-1][0] < iterations[-1][1]


def test_a_warm_evaluation_at_the_same_place_needs_no_iteration() -> None:
    X, y, noise = problem()
    engine = cg_engine(X, cg_tol=1e-6)
    first, second = engine.evidence(y, noise), engine.evidence(y, noise, warm=True)
    assert second.iterations == 0
    assert second.loss == pytest.approx(first.loss, abs=1e-9)


def test_a_fresh_evaluation_forgets_the_ones_before(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, noise = problem()
    engine = cg_engine(X)
    first = engine.evidence(y, noise)
    engine.evidence(y, 2 * noise, warm=True)
    assert engine.evidence(y, noise).loss == first.loss
    # A chain of warm evaluations ends after a number of steps, and then starts afresh by itself.
    monkeypatch.setattr("mipl.gp.exact.WARM_STEPS", 2)
    monkeypatch.setattr("mipl.gp.exact.WARM_ITERATIONS", 1000)
    losses = [engine.evidence(y, noise * factor, warm=True).loss for factor in (1.1, 1.2, 1.0)]
    assert losses[-1] == first.loss
    assert losses[1] != cg_engine(X).evidence(y, 1.2 * noise).loss


@pytest.mark.parametrize("matrices", [0, 1])
def test_a_small_memory_budget_changes_nothing_but_speed(matrices: int) -> None:
    X, y, noise = problem()
    full, frugal = cg_engine(X), cg_engine(X, memory_budget=matrices * N * N * 8)
    assert full.evidence(y, noise).loss == pytest.approx(frugal.evidence(y, noise).loss, abs=1e-9)
    for name, gradient in gradients(full).items():
        np.testing.assert_allclose(gradient, gradients(frugal)[name], atol=1e-9, err_msg=name)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("lengthscale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("data", ["duplicates", "constant", "far"])
def test_float32_never_gives_nan(data: str, lengthscale: float, nu: float) -> None:
    rng = np.random.default_rng(0)
    X = {
        "duplicates": np.repeat(rng.normal(size=(4, 3)), 15, axis=0),
        "constant": np.full((60, 3), 7.0),
        "far": np.repeat([[0.0], [1e6]], 30, axis=0),
    }[data]
    y, noise = rng.normal(size=(60, C)), rng.uniform(0.7, 9, size=(60, C))
    for variance_rank in (20, None):
        engine = cg_engine(
            X, kernel=scaled_matern(nu, lengthscale, 1.0), dtype=torch.float32, cg_tol=0.01, preconditioner_size=100,
            variance_rank=variance_rank,
        )  # fmt: skip
        out = engine.evidence(y, noise)
        assert np.isfinite(out.loss)
        assert np.isfinite(out.posterior_mean).all()
        assert all(torch.isfinite(g).all() for g in gradients(engine).values())
        moments = engine.condition(y, noise).posterior.moments(X, batch_size=9)
        assert all(np.isfinite(m).all() for m in moments)
