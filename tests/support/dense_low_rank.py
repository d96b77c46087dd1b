"""The dense float64 oracle of the low-rank engine, on the small problem of the exact engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from dense_gp import LENGTHSCALE, OUTPUTSCALE, Array, C, N, distances, matern

from mipl.gp.exact import Conditioned, Evidence
from mipl.gp.kernels import scaled_matern
from mipl.gp.low_rank import JITTER, LowRankEngine, landmark_distances
from mipl.gp.low_rank_sums import NoiseLevels, RowBlock, noise_levels, posterior_means, row_groups


class Rows:
    """The engine on rows in memory, cut into blocks, that takes targets and noises of all rows as the exact ones do."""

    def __init__(self, X: Array, nu: float, n_landmarks: int, dtype: torch.dtype, weights: Array | None) -> None:
        rows, count = torch.tensor(X, dtype=dtype), None if weights is None else torch.tensor(weights)
        kernel = scaled_matern(nu, LENGTHSCALE, OUTPUTSCALE)
        self.engine = LowRankEngine(rows, kernel, C, n_landmarks=n_landmarks, extra_noise=0.3, seed=0, weights=count)
        self.landmarks, self.mean, self.weights = self.engine.landmarks, self.engine.mean, count
        self.blocks = np.array_split(np.arange(len(X)), 3)
        self.distances = landmark_distances(rows, self.landmarks)
        with torch.no_grad():
            self.mean += torch.linspace(-1, 1, C, dtype=torch.float64)

    def parameters(self) -> Any:
        return self.engine.parameters()

    def named_parameters(self) -> Any:
        return self.engine.named_parameters()

    def rows(self, y: Array, noise: Array, known: NoiseLevels) -> list[RowBlock]:
        return [
            RowBlock(
                self.distances[at], torch.tensor(y[at]), torch.tensor(noise[at]), row_groups(noise[at], known),
                None if self.weights is None else self.weights[at],
            )
            for at in self.blocks
        ]  # fmt: skip

    def evidence(self, y: Array, noise: Array, **_: Any) -> Evidence:
        known = noise_levels(noise)
        rows = self.rows(y, noise, known)
        found = self.engine.evidence(partial(_total, rows), known)
        means = [posterior_means(block, found.at, found.coefficients) for block in rows]
        return Evidence(found.loss, np.concatenate(means), 0, 0.0)

    def condition(self, y: Array, noise: Array) -> Conditioned:
        known = noise_levels(noise)
        return self.engine.condition(partial(_total, self.rows(y, noise, known)), known, noise)


def _total(rows: list[RowBlock], function: Any, **shared: Any) -> tuple[torch.Tensor, ...]:
    parts = [function(block, **shared) for block in rows]
    return tuple(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True))


def low_rank_engine(
    X: Array,
    *,
    nu: float = 2.5,
    n_landmarks: int = 40,
    dtype: torch.dtype = torch.float64,
    weights: Array | None = None,
) -> Rows:
    return Rows(X, nu, n_landmarks, dtype, weights)


def approximate_kernel(engine: Rows, A: Any, B: Any, nu: float, lengthscale: Any, outputscale: Any) -> Any:
    """The kernel (a, b) of two sets of rows that the engine's landmarks define."""
    Z = engine.landmarks.double()
    K = matern(distances(Z, Z), nu, lengthscale) + JITTER * torch.eye(len(Z))
    to_A, to_B = (matern(distances(torch.tensor(R), Z), nu, lengthscale) for R in (A, B))
    return outputscale * to_A @ torch.linalg.solve(K, to_B.T)


def dense(engine: Rows, X: Array, y: Array, noise: Array, nu: float) -> tuple[float, dict[str, Any], Any]:
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
