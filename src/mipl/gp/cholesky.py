"""The exact engine for few instances: a Cholesky factor per class, in double precision."""

from __future__ import annotations

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.exact import Evaluation, ExactEngine, Solve
from mipl.gp.repeats import Repeats
from mipl.gp.solvers import Preconditioner

__all__ = ["CholeskyEngine"]


class CholeskyEngine(ExactEngine):
    """Evidence and posterior by Cholesky factors in float64: exact, n^3 / 3 operations per class.

    Its posterior computes variances exactly, too.

    Parameters
    ----------
    X, kernel, n_classes, extra_noise, memory_budget, device, weights, repeats
        See `ExactEngine`.
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        kernel: Kernel,
        n_classes: int,
        *,
        extra_noise: float,
        memory_budget: float,
        device: torch.device,
        weights: NDArray[np.float64] | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        super().__init__(
            X,
            kernel,
            n_classes,
            extra_noise=extra_noise,
            memory_budget=memory_budget,
            device=device,
            dtype=torch.float64,
            weights=weights,
            repeats=repeats,
        )

    def _evaluate(self, residual: Tensor, noise: Tensor, *, warm: bool) -> Evaluation:
        K = self.K.dense()
        weight, value = torch.zeros_like(K), 0.0
        solution, by_noise = torch.empty_like(residual), torch.empty_like(noise)
        for c in range(len(noise)):
            factor = torch.linalg.cholesky(K + noise[c].diag())
            solution[c] = torch.cholesky_solve(residual[c, :, None], factor)[:, 0]
            value += (residual[c] @ solution[c] + 2 * factor.diagonal().log().sum()).item()
            by_c = torch.cholesky_inverse(factor).sub_(torch.outer(solution[c], solution[c]))
            by_noise[c] = by_c.diagonal()
            weight += by_c
        return Evaluation(value, solution, self.K.gradient(weight), by_noise, 0, 0.0)

    def _solve(self, residual: Tensor, noise: Tensor, preconditioner: Preconditioner | None) -> Solve:
        K = self.K.dense()
        factors = (torch.linalg.cholesky(K + diagonal.diag()) for diagonal in noise)
        columns = [torch.cholesky_solve(r[:, None], f)[:, 0] for r, f in zip(residual, factors, strict=True)]
        return Solve(torch.stack(columns), 0, 0.0)

    def _inverse_root(self, noise: Tensor) -> None:
        return None
