"""The exact engine against a dense float64 oracle, GPyTorch and finite differences."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mipl.gp.exact import ExactGP
from mipl.gp.kernels import KernelMatrix, MaternMatrix, cross_kernel, kernel_matrix, scaled_matern
from mipl.gp.posterior import Posterior

N, D, C = 200, 5, 4
Array = NDArray[np.float64]


@pytest.fixture
def problem() -> tuple[Array, Array, Array]:
    """Instances (n, d), targets and heteroscedastic noises (n, C)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)), rng.normal(size=(N, C)) - 2, rng.uniform(0.7, 9.2, size=(N, C))


def engine(X: Array, *, kernel: Any = None, nu: float = 2.5, **params: Any) -> ExactGP:
    options: dict[str, Any] = {
        "extra_noise": 0.3, "cholesky_size": 0, "preconditioner_size": 20, "n_probes": 10, "cg_tol": 1e-10,
        "max_cg_iter": 500, "memory_budget": 1e9, "seed": 0, "dtype": torch.float64,
    }  # fmt: skip
    gp = ExactGP(X, kernel or scaled_matern(nu, 1.7, 2.3), C, **(options | params))
    with torch.no_grad():
        gp.mean += torch.linspace(-1, 1, C, dtype=torch.float64)
    return gp


def matern(d: Any, nu: float, length: Any) -> Any:
    s = (2 * nu) ** 0.5 * d / length
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu] * torch.exp(-s)


def dense(gp: ExactGP, X: Array, y: Array, noise: Array, nu: float) -> tuple[Any, dict[str, Any], Any]:
    """Loss, gradient by autograd, and A (C, n, n), all dense in float64."""
    raw = {name: p.detach().double().clone().requires_grad_() for name, p in gp.named_parameters()}
    softplus = torch.nn.functional.softplus
    x = torch.tensor(X)
    d = torch.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-300)
    K = softplus(raw["kernel.raw_outputscale"]) * matern(d, nu, softplus(raw["kernel.base_kernel.raw_lengthscale"]))
    extra = softplus(raw["raw_noise"]) + 1e-4
    A = K + torch.diag_embed(torch.tensor(noise.T) + extra[:, None])
    normal = torch.distributions.MultivariateNormal(raw["mean"][:, None].expand(C, N), A)
    loss = -normal.log_prob(torch.tensor(y.T)).mean() / N
    loss.backward()
    return loss.item(), {name: p.grad for name, p in raw.items()}, A.detach()


def gradients(gp: ExactGP) -> dict[str, Any]:
    return {name: p.grad.double() for name, p in gp.named_parameters()}


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_cholesky_loss_gradient_and_posterior_mean_equal_the_dense_oracle(problem: Any, nu: float) -> None:
    X, y, noise = problem
    gp = engine(X, nu=nu, cholesky_size=N)
    out = gp.evidence(y, noise)
    loss, expected, A = dense(gp, X, y, noise, nu)
    assert out.loss == pytest.approx(loss, abs=1e-6)
    for name, gradient in gradients(gp).items():
        np.testing.assert_allclose(gradient, expected[name], atol=1e-6, err_msg=name)
    K = A[0] - torch.diag(torch.tensor(noise[:, 0]) + gp.extra_noise[0].detach())
    mean = gp.mean.detach()
    posterior = mean[:, None] + torch.einsum("ij,cj->ci", K, torch.linalg.solve(A, torch.tensor(y.T) - mean[:, None]))
    np.testing.assert_allclose(out.posterior_mean, posterior.T, atol=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_iterative_solutions_equal_the_dense_oracle(problem: Any, nu: float) -> None:
    X, y, noise = problem
    gp = engine(X, nu=nu)
    out = gp.evidence(y, noise)
    direct = engine(X, nu=nu, cholesky_size=N)
    assert out.residual < 1e-10
    np.testing.assert_allclose(out.posterior_mean, direct.evidence(y, noise).posterior_mean, atol=1e-7)
    np.testing.assert_allclose(gradients(gp)["mean"], gradients(direct)["mean"], atol=1e-9)


def test_iterative_loss_and_gradient_approach_the_dense_oracle_with_many_probes(problem: Any) -> None:
    X, y, noise = problem
    gp = engine(X, n_probes=500)
    out = gp.evidence(y, noise)
    loss, expected, _ = dense(gp, X, y, noise, 2.5)
    assert out.loss == pytest.approx(loss, abs=2e-3)
    for name, gradient in gradients(gp).items():
        np.testing.assert_allclose(gradient, expected[name], atol=2e-3, err_msg=name)


def test_float32_at_the_default_tolerance_is_near_the_dense_oracle(problem: Any) -> None:
    X, y, noise = problem
    gp = engine(X, dtype=torch.float32, cg_tol=0.01, n_probes=50)
    out = gp.evidence(y, noise)
    loss, expected, _ = dense(gp, X, y, noise, 2.5)
    assert out.residual < 0.01
    assert out.loss == pytest.approx(loss, abs=1e-2)
    for name, gradient in gradients(gp).items():
        np.testing.assert_allclose(gradient, expected[name], atol=0.01, err_msg=name)


def test_the_gradient_is_that_of_finite_differences(problem: Any) -> None:
    X, y, noise = problem
    gp = engine(X, cholesky_size=N)
    gp.evidence(y, noise)
    for parameter in gp.parameters():
        gradient = parameter.grad.clone()
        for i in range(parameter.numel()):
            ends = []
            for step in (1e-5, -2e-5):
                with torch.no_grad():
                    parameter.view(-1)[i] += step
                ends.append(gp.evidence(y, noise).loss)
            with torch.no_grad():
                parameter.view(-1)[i] += 1e-5
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(gradient.view(-1)[i].item(), rel=1e-4, abs=1e-8)


def test_the_iterative_objective_is_deterministic(problem: Any) -> None:
    X, y, noise = problem
    first, second = engine(X), engine(X)
    assert first.evidence(y, noise).loss == second.evidence(y, noise).loss
    assert first.evidence(y, noise).loss == second.evidence(y, noise).loss
    assert engine(X, seed=1).evidence(y, noise).loss != first.evidence(y, noise).loss


@pytest.mark.parametrize("cholesky_size", [0, N])
def test_loss_and_gradient_equal_those_of_gpytorch(problem: Any, cholesky_size: int) -> None:
    X, y, noise = problem
    gp = engine(X, cholesky_size=cholesky_size, n_probes=500)
    out = gp.evidence(y, noise)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, targets: Any, likelihood: Any) -> None:
            super().__init__(x, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=torch.Size((C,)))
            self.covar_module = scaled_matern(2.5, 1.7, 2.3)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(
        torch.tensor(noise.T.copy()), learn_additional_noise=True, batch_shape=torch.Size((C,))
    )
    likelihood.second_noise = 0.3
    model = Model(torch.tensor(X), torch.tensor(y.T.copy()), likelihood).double()
    model.mean_module.constant.data = gp.mean.detach().clone()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    loss = -mll(model(torch.tensor(X)), torch.tensor(y.T.copy())).mean()
    loss.backward()
    atol = 1e-6 if cholesky_size else 2e-3
    assert out.loss == pytest.approx(loss.item(), abs=atol)
    found = gradients(gp)
    base = model.covar_module
    np.testing.assert_allclose(found["kernel.raw_outputscale"], base.raw_outputscale.grad, atol=atol)
    np.testing.assert_allclose(
        found["kernel.base_kernel.raw_lengthscale"], base.base_kernel.raw_lengthscale.grad, atol=atol
    )
    np.testing.assert_allclose(found["mean"], model.mean_module.constant.grad, atol=atol)
    raw_noise = likelihood.second_noise_covar.raw_noise.grad.view(-1)
    np.testing.assert_allclose(found["raw_noise"], raw_noise, atol=atol)


@pytest.mark.parametrize("cholesky_size", [0, N])
def test_any_gpytorch_kernel_can_be_used(problem: Any, cholesky_size: int) -> None:
    X, y, noise = problem
    general = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=D) + gpytorch.kernels.LinearKernel())
    assert type(kernel_matrix(general.double(), torch.tensor(X), 1e9)) is KernelMatrix
    gp = engine(X, kernel=general, cholesky_size=cholesky_size)
    before = gp.evidence(y, noise).loss
    optimizer = torch.optim.SGD(gp.parameters(), lr=0.1)
    optimizer.step()
    assert gp.evidence(y, noise).loss < before


def test_the_general_path_agrees_with_the_matern_path(problem: Any) -> None:
    X, y, noise = problem
    fast, general = engine(X), engine(X)
    assert isinstance(fast.K, MaternMatrix)
    general.K = KernelMatrix(general.kernel, torch.tensor(X), 1e9)
    assert fast.evidence(y, noise).loss == pytest.approx(general.evidence(y, noise).loss, abs=1e-8)
    for name, gradient in gradients(fast).items():
        np.testing.assert_allclose(gradient, gradients(general)[name], atol=1e-8, err_msg=name)


def test_a_warm_evaluation_follows_the_fresh_one_through_an_optimisation(problem: Any) -> None:
    X, y, noise = problem
    warm, fresh = engine(X, n_probes=40), engine(X, n_probes=40)
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


def test_a_warm_evaluation_at_the_same_place_needs_no_iteration(problem: Any) -> None:
    X, y, noise = problem
    gp = engine(X, cg_tol=1e-6)
    first, second = gp.evidence(y, noise), gp.evidence(y, noise, warm=True)
    assert second.iterations == 0
    assert second.loss == pytest.approx(first.loss, abs=1e-9)


@pytest.mark.parametrize("matrices", [0, 1])
def test_a_small_memory_budget_changes_nothing_but_speed(problem: Any, matrices: int) -> None:
    X, y, noise = problem
    full, frugal = engine(X), engine(X, memory_budget=matrices * N * N * 8)
    assert full.evidence(y, noise).loss == pytest.approx(frugal.evidence(y, noise).loss, abs=1e-9)
    assert full.K.distances
    assert not frugal.K.distances
    assert bool(frugal.K.tiles) == (matrices == 1)
    for name, gradient in gradients(full).items():
        np.testing.assert_allclose(gradient, gradients(frugal)[name], atol=1e-9, err_msg=name)


def posterior_and_oracle(problem: Any, rank: int | None) -> tuple[Any, Any, Any, Any]:
    X, y, noise = problem
    gp = engine(X)
    solution, _, _ = gp.condition(y, noise, tol=1e-12)
    total = noise + gp.extra_noise.detach().numpy()
    root = None if rank is None else gp.inverse_root(noise, rank)
    mean = gp.mean.detach().numpy()
    posterior = Posterior(gp.kernel, X, mean, solution, total, root, dtype=torch.float64)
    new = np.random.default_rng(1).normal(size=(30, D))
    _, _, A = dense(gp, X, y, noise, 2.5)
    k = cross_kernel(gp.kernel, torch.tensor(new), torch.tensor(X))
    true_mean = mean + np.stack([k @ torch.linalg.solve(A[c], torch.tensor(y[:, c] - mean[c])) for c in range(C)], 1)
    reduction = [(k * torch.linalg.solve(A[c], k.T).T).sum(1).numpy() for c in range(C)]
    return *posterior.moments(new, batch_size=7), true_mean, 2.3 - np.stack(reduction, 1)


def test_the_posterior_at_new_instances_equals_the_dense_oracle(problem: Any) -> None:
    mean, variance, true_mean, true_variance = posterior_and_oracle(problem, rank=None)
    np.testing.assert_allclose(mean, true_mean, atol=1e-6)
    np.testing.assert_allclose(variance, true_variance, atol=1e-6)


def test_lanczos_variances_bound_the_exact_ones_from_above_and_meet_them_at_full_rank(problem: Any) -> None:
    _, exact, _, true_variance = posterior_and_oracle(problem, rank=N)
    np.testing.assert_allclose(exact, true_variance, atol=1e-3)
    _, coarse, _, _ = posterior_and_oracle(problem, rank=30)
    assert (coarse >= true_variance - 1e-6).all()
    assert (coarse <= 2.3 + 1e-6).all()


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("length_scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("data", ["duplicates", "constant", "far"])
def test_float32_never_gives_nan(data: str, length_scale: float, nu: float) -> None:
    rng = np.random.default_rng(0)
    X = {
        "duplicates": np.repeat(rng.normal(size=(4, 3)), 15, axis=0),
        "constant": np.full((60, 3), 7.0),
        "far": np.repeat([[0.0], [1e6]], 30, axis=0),
    }[data]
    y, noise = rng.normal(size=(60, C)), rng.uniform(0.7, 9, size=(60, C))
    kernel = scaled_matern(nu, length_scale, 1.0)
    gp = engine(X, kernel=kernel, dtype=torch.float32, cg_tol=0.01, preconditioner_size=100)
    out = gp.evidence(y, noise)
    assert np.isfinite(out.loss)
    assert np.isfinite(out.posterior_mean).all()
    assert all(torch.isfinite(g).all() for g in gradients(gp).values())
    solution, _, _ = gp.condition(y, noise, tol=1e-4)
    root = gp.inverse_root(noise, 20)
    for r in (root, None):
        moments = Posterior(gp.kernel, X, np.zeros(C), solution, noise, r).moments(X, batch_size=9)
        assert all(np.isfinite(m).all() for m in moments)
