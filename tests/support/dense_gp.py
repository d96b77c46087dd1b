"""The dense float64 oracle of the exact engines, and the small problem that their tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mipl.gp.exact import CholeskyEngine, ConjugateGradientEngine, ExactEngine
from mipl.gp.kernels import scaled_matern

N, D, C = 200, 5, 4
LENGTHSCALE, OUTPUTSCALE = 1.7, 2.3
CPU = torch.device("cpu")
Array = NDArray[np.float64]


def problem() -> tuple[Array, Array, Array]:
    """Instances (n, d), targets and heteroscedastic noises (n, C)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)), rng.normal(size=(N, C)) - 2, rng.uniform(0.7, 9.2, size=(N, C))


def cholesky_engine(X: Array, *, kernel: Any = None, nu: float = 2.5, **params: Any) -> CholeskyEngine:
    kernel = kernel or scaled_matern(nu, LENGTHSCALE, OUTPUTSCALE)
    return _away_from_zero(CholeskyEngine(X, kernel, C, extra_noise=0.3, memory_budget=1e9, device=CPU, **params))


def cg_engine(X: Array, *, kernel: Any = None, nu: float = 2.5, **params: Any) -> ConjugateGradientEngine:
    options: dict[str, Any] = {
        "extra_noise": 0.3, "preconditioner_size": 20, "n_probes": 10, "cg_tol": 1e-10, "max_cg_iter": 500,
        "variance_rank": None, "memory_budget": 1e9, "seed": 0, "device": CPU, "dtype": torch.float64,
    }  # fmt: skip
    kernel = kernel or scaled_matern(nu, LENGTHSCALE, OUTPUTSCALE)
    return _away_from_zero(ConjugateGradientEngine(X, kernel, C, **(options | params)))


def _away_from_zero(engine: Any) -> Any:
    with torch.no_grad():
        engine.mean += torch.linspace(-1, 1, C, dtype=torch.float64)
    return engine


def matern(d: Any, nu: float, length: Any) -> Any:
    s = (2 * nu) ** 0.5 * d / length
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu] * torch.exp(-s)


def distances(A: Any, B: Any) -> Any:
    return torch.sqrt(((A[:, None] - B[None]) ** 2).sum(-1) + 1e-300)


def dense(engine: ExactEngine, X: Array, y: Array, noise: Array, nu: float) -> tuple[Any, dict[str, Any], Any]:
    """Loss, gradient by autograd, and A (C, n, n), all dense in float64."""
    raw = {name: p.detach().double().clone().requires_grad_() for name, p in engine.named_parameters()}
    softplus = torch.nn.functional.softplus
    x = torch.tensor(X)
    lengthscale = softplus(raw["kernel.base_kernel.raw_lengthscale"])
    K = softplus(raw["kernel.raw_outputscale"]) * matern(distances(x, x), nu, lengthscale)
    extra = softplus(raw["raw_noise"]) + 1e-4
    A = K + torch.diag_embed(torch.tensor(noise.T) + extra[:, None])
    normal = torch.distributions.MultivariateNormal(raw["mean"][:, None].expand(C, N), A)
    loss = -normal.log_prob(torch.tensor(y.T)).mean() / N
    loss.backward()
    return loss.item(), {name: p.grad for name, p in raw.items()}, A.detach()


def gradients(engine: ExactEngine) -> dict[str, Any]:
    return {name: p.grad.double() for name, p in engine.named_parameters()}
