"""Prediction: posterior mean and variance of every class at new instances."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.kernels import cross_kernel, kernel_matrix

__all__ = ["Posterior", "PosteriorState"]


class PosteriorState(NamedTuple):
    """What a posterior is made of, as arrays: what a model keeps and saves.

    Attributes
    ----------
    instances : (n, d) array
        Training instances.
    mean : (C,) array
        Constant means.
    solution : (n, C) array
        The vectors a_c. Their precision is that of the prediction.
    noise : (n, C) array
        The diagonal of A_c - K.
    inverse_root : (C, n, k) array or None
        Roots of A_c^-1. Without them each prediction factors each A_c, in turn: 4 n^2 bytes of memory beside K, and
        n^3 / 3 operations per class.
    kernel_state : dict of str to array
        Parameters of the kernel, by GPyTorch's names.
    """

    instances: NDArray[np.floating]
    mean: NDArray[np.float64]
    solution: NDArray[np.floating]
    noise: NDArray[np.float64]
    inverse_root: NDArray[np.float32] | None
    kernel_state: dict[str, NDArray[Any]]


class Posterior:
    r"""C conditioned Gaussian processes with one kernel.

    .. math:: m_c(x) = \mu_c + k(x)^\top a_c, \qquad v_c(x) = k(x, x) - k(x)^\top A_c^{-1} k(x).

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        A kernel of the form that the state was learned with. It is copied, and the copy gets the state's parameters.
    state : PosteriorState
        What an engine's `condition` found, see the attribute of that name.
    device : torch.device
        Where moments are computed.
    """

    def __init__(self, kernel: Kernel, state: PosteriorState, *, device: torch.device) -> None:
        self.state, self.device = state, device
        self.dtype = torch.float64 if state.solution.dtype == np.float64 else torch.float32
        self.kernel = copy.deepcopy(kernel).to(device=device, dtype=self.dtype)
        self.kernel.load_state_dict({name: torch.tensor(value) for name, value in state.kernel_state.items()})

    @torch.no_grad()
    def moments(self, X: NDArray[np.floating], batch_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances (b, C) at instances X (b, d), `batch_size` of them at a time."""
        batches = [X[start : start + batch_size] for start in range(0, len(X), batch_size)]
        instances, mean, solution = map(self._tensor, self.state[:3])
        roots = None if self.state.inverse_root is None else self._tensor(self.state.inverse_root)
        means, priors, explained = [], [], []
        for batch in map(self._tensor, batches):
            cross = cross_kernel(self.kernel, batch, instances)
            means.append(mean + cross @ solution)
            priors.append(self.kernel(batch, diag=True))
            if roots is not None:
                explained.append(torch.stack([(cross @ root).square().sum(1) for root in roots], 1))
        reduction = torch.cat(explained) if roots is not None else self._explained_exactly(instances, batches)
        variance = (torch.cat(priors)[:, None] - reduction).clamp_(min=0)
        return torch.cat(means).double().cpu().numpy(), variance.double().cpu().numpy()

    def _explained_exactly(self, instances: Tensor, batches: list[NDArray[np.floating]]) -> Tensor:
        """Variance k' A_c^-1 k (b, C) that the instances (n, d) explain, for all batches, one factor at a time."""
        K = kernel_matrix(self.kernel, instances, memory_budget=0).dense()

        def solved(factor: Tensor) -> Iterator[Tensor]:
            for batch in map(self._tensor, batches):
                yield torch.linalg.solve_triangular(factor, cross_kernel(self.kernel, batch, instances).T, upper=False)

        columns = []
        for noise in self._tensor(self.state.noise).T:
            A = K.clone()
            A.diagonal().add_(noise)
            columns.append(torch.cat([part.square().sum(0) for part in solved(torch.linalg.cholesky(A))]))
        return torch.stack(columns, 1)

    def _tensor(self, array: NDArray[np.floating]) -> Tensor:
        return torch.tensor(array, dtype=self.dtype, device=self.device)
