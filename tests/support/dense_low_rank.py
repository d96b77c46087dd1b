"""The dense float64 oracle of the low-rank engine, on the small problem of the exact engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dense_gp import CPU, LENGTHSCALE, OUTPUTSCALE, Array, C, N, distances, matern

from mipl.gp.kernels import scaled_matern
from mipl.gp.low_rank import JITTER, LowRankEngine


def low_rank_engine(X: Array, *, nu: float = 2.5, n_landmarks: int = 40, **params: Any) -> LowRankEngine:
    options: dict[str, Any] = {"extra_noise": 0.3, "seed": 0, "device": CPU, "dtype": torch.float64}
    kernel = scaled_matern(nu, LENGTHSCALE, OUTPUTSCALE)
    engine = LowRankEngine(X, kernel, C, n_landmarks=n_landmarks, **(options | params))
    with torch.no_grad():
        engine.mean += torch.linspace(-1, 1, C, dtype=torch.float64)
    return engine


def approximate_kernel(engine: LowRankEngine, A: Any, B: Any, nu: float, lengthscale: Any, outputscale: Any) -> Any:
    """The kernel (a, b) of two sets of rows that the engine's landmarks define."""
    Z = engine.landmarks.double()
    K = matern(distances(Z, Z), nu, lengthscale) + JITTER * torch.eye(len(Z))
    to_A, to_B = (matern(distances(torch.tensor(R), Z), nu, lengthscale) for R in (A, B))
    return outputscale * to_A @ torch.linalg.solve(K, to_B.T)


def dense(engine: LowRankEngine, X: Array, y: Array, noise: Array, nu: float) -> tuple[float, dict[str, Any], Any]:
    """Loss, gradient by autograd, and A (C, n, n), all dense in float64."""
    raw = {name: p.detach().double().clone().requires_grad_() for name, p in engine.named_parameters()}
    softplus = torch.nn.functional.softplus
    scales = softplus(raw["kernel.base_kernel.raw_lengthscale"]), softplus(raw["kernel.raw_outputscale"])
    K = approximate_kernel(engine, X, X, nu, *scales)
    extra = softplus(raw["raw_noise"]) + 1e-4
    A = K + torch.diag_embed(torch.tensor(noise.T) + extra[:, None])
    normal = torch.distributions.MultivariateNormal(raw["mean"][:, None].expand(C, N), A)
    loss = -normal.log_prob(torch.tensor(y.T)).mean() / N
    loss.backward()
    return loss.item(), {name: p.grad for name, p in raw.items()}, A.detach()


def noises() -> dict[str, Array]:
    """Noises (n, C) of every structure: of candidate sets, of two sizes of these, of each row its own, and mixed."""
    rng = np.random.default_rng(3)
    mask = rng.random((N, C)) < 0.4
    mask[:, -1] = True
    own = rng.uniform(0.7, 9.0, size=(N, C))
    sets = np.where(mask, 1.1, 9.2)
    sizes = np.where(mask, np.where(rng.random((N, 1)) < 0.5, 1.1, 1.4), 9.2)
    mixed = np.where(mask, own, 9.2)
    mixed[:, 1] = sets[:, 1]
    return {"candidate sets": sets, "set sizes": sizes, "rows": own, "mixed": mixed}
