"""Prediction: posterior mean and variance of every class at new instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.kernels import cross_kernel, kernel_matrix

__all__ = ["Posterior"]


class Posterior:
    r"""C conditioned Gaussian processes with one kernel.

    .. math:: m_c(x) = \mu_c + k(x)^\top a_c, \qquad v_c(x) = k(x, x) - k(x)^\top A_c^{-1} k(x).

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
    X : (n, d) array
        Training instances.
    mean : (C,) array
    solution : (n, C) array
        The vectors a_c.
    noise : (n, C) array
        The diagonal of A_c - K.
    root : (C, n, k) array, optional
        Roots of A_c^-1. Without them each call factors each A_c, in turn: 4 n^2 bytes of memory beside K, and n^3 / 3
        operations a class.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: NDArray[np.floating],
        mean: NDArray[np.float64],
        solution: NDArray[np.float64],
        noise: NDArray[np.float64],
        root: NDArray[np.float32] | None = None,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.kernel = kernel.to(device=device, dtype=dtype)
        self.X, self.mean, self.solution, self.noise = (
            torch.as_tensor(np.array(a), dtype=dtype, device=device) for a in (X, mean, solution, noise)
        )
        self.root = None if root is None else torch.as_tensor(root, dtype=dtype, device=device)

    @torch.no_grad()
    def moments(self, X: NDArray[np.floating], batch_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances (b, C) at instances X (b, d), `batch_size` of them at a time."""
        starts = range(0, len(X), batch_size)

        def batches() -> Iterator[Tensor]:
            for start in starts:
                yield torch.tensor(X[start : start + batch_size], dtype=self.X.dtype, device=self.X.device)

        means, priors, explained = [], [], []
        for batch in batches():
            cross = cross_kernel(self.kernel, batch, self.X)
            means.append(self.mean + cross @ self.solution)
            priors.append(self.kernel(batch, diag=True))
            if self.root is not None:
                explained.append(self._explained_by_root(cross))
        reduction = torch.cat(explained) if self.root is not None else self._explained_exactly(batches)
        variance = (torch.cat(priors)[:, None] - reduction).clamp_(min=0)
        return torch.cat(means).double().cpu().numpy(), variance.double().cpu().numpy()

    def _explained_by_root(self, cross: Tensor) -> Tensor:
        """Variance k' R_c R_c' k that is explained by kernel values k (b, n), to (b, C)."""
        assert self.root is not None
        return torch.stack([(cross @ root).square().sum(1) for root in self.root], 1)

    def _explained_exactly(self, batches: Callable[[], Iterator[Tensor]]) -> Tensor:
        """Variance k' A_c^-1 k that is explained, for all batches, one factor at a time, to (b, C)."""
        K = kernel_matrix(self.kernel, self.X, memory_budget=0).dense()
        columns = []
        for noise in self.noise.T:
            A = K.clone()
            A.diagonal().add_(noise)
            factor = torch.linalg.cholesky(A)
            solved = (
                torch.linalg.solve_triangular(factor, cross_kernel(self.kernel, b, self.X).T, upper=False)
                for b in batches()
            )
            columns.append(torch.cat([part.square().sum(0) for part in solved]))
        return torch.stack(columns, 1)
