"""Prediction: posterior mean and variance of every class at new instances."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.joint import ExactCovariance, JointCovariance, LowRankCovariance, sampling_root
from mipl.gp.kernels import CrossKernel, kernel_matrix, prior_variances

__all__ = ["Posterior", "PosteriorState"]

# Memory blocks of this size are used again by the next batch; larger ones are fetched anew from the system each time,
# which costs as much as computing what goes into them. Yet products need some rows to be fast.
BLOCK_BYTES = 1 << 24
SMALLEST_BATCH = 128


class PosteriorState(NamedTuple):
    """What a posterior is made of, as arrays: what a model keeps and saves.

    With the low-rank engine the n instances are its landmarks, and A_c^-1 stands for what the training instances
    explain through them.

    Attributes
    ----------
    instances : (n, d) array
        Training instances, or landmarks.
    mean : (C,) array
        Constant means.
    solution : (n, C) array
        The vectors a_c. Their precision is that of the prediction.
    noise : (n, C) array or None
        The diagonal of A_c - K; with landmarks, the noises of the training instances, or None: no moment needs them.
    inverse_root : (C, n, k) array or None
        Roots of A_c^-1. Without them each prediction factors each A_c, in turn: 4 n^2 bytes of memory beside K, and
        n^3 / 3 operations per class.
    prior_root : (n, n) array or None
        Upper triangular root of the inverse of the kernel matrix of landmarks: joint covariances then take the prior to
        be of low rank beside its diagonal. None where the instances are those of training.
    kernel_state : dict of str to array
        Parameters of the kernel, by GPyTorch's names.
    landmarks : (M, d) array or None, default=None
        Where given, means come from the instances and variances from these: `inverse_root` is (C, M, k) and
        `prior_root` (M, M). None where both come from the instances.
    """

    instances: NDArray[np.floating]
    mean: NDArray[np.float64]
    solution: NDArray[np.floating]
    noise: NDArray[np.float64] | None
    inverse_root: NDArray[np.floating] | None
    prior_root: NDArray[np.floating] | None
    kernel_state: dict[str, NDArray[Any]]
    landmarks: NDArray[np.floating] | None = None


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
    def means(self, X: NDArray[np.floating], batch_size: int) -> NDArray[np.float64]:
        """Means (b, C) at instances X (b, d), `batch_size` of them at a time."""
        instances, mean, solution = map(self._tensor, self.state[:3])
        cross_kernel = CrossKernel(self.kernel, instances)
        batches = map(self._tensor, _batches(X, batch_size))
        means = [mean + cross_kernel.multiply(batch, solution) for batch in batches]
        return torch.cat(means).double().cpu().numpy()

    @torch.no_grad()
    def moments(self, X: NDArray[np.floating], batch_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances (b, C) at instances X (b, d), `batch_size` of them at a time."""
        batches = self._batches(X, batch_size)
        instances, mean, solution = map(self._tensor, self.state[:3])
        roots = None if self.state.inverse_root is None else self._tensor(self.state.inverse_root)
        with_instances, with_landmarks = CrossKernel(self.kernel, instances), None
        if self.state.landmarks is not None:
            with_landmarks = CrossKernel(self.kernel, self._tensor(self.state.landmarks))
        means, priors, explained = [], [], []
        for batch in map(self._tensor, batches):
            cross, product = _cross_and_product(batch, with_instances, with_landmarks, solution)
            means.append(mean + product)
            priors.append(prior_variances(self.kernel, batch))
            if roots is not None:
                explained.append(torch.stack([(cross @ root).square().sum(1) for root in roots], 1))
        reduction = torch.cat(explained) if roots is not None else self._explained_exactly(instances, batches)
        variance = (torch.cat(priors)[:, None] - reduction).clamp_(min=0)
        return torch.cat(means).double().cpu().numpy(), variance.double().cpu().numpy()

    @torch.no_grad()
    def sampling_roots(
        self,
        X: NDArray[np.floating],
        batch_size: int,
        generator: torch.Generator,
        memory_budget: float,
        counts: NDArray[np.int64] | None = None,
        n_classes: int | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.floating]]:
        """Means (b, C) at instances X (b, d), and roots (C, b, k) of their covariances (`mipl.gp.joint`).

        Beside the prior covariance of X, of which `memory_budget` bytes are kept, all roots are held in memory.
        `counts` (b,) says how often each instance is among those that are drawn together; None for once. With
        `n_classes` only the first so many classes have roots.
        """
        instances, mean, solution = map(self._tensor, self.state[:3])
        batches = self._batches(X, batch_size)
        inverse_root = None if self.state.inverse_root is None else self._tensor(self.state.inverse_root[:n_classes])
        prior_root = None if self.state.prior_root is None else self._tensor(self.state.prior_root)
        with_instances, with_landmarks = CrossKernel(self.kernel, instances), None
        if self.state.landmarks is not None:
            with_landmarks = CrossKernel(self.kernel, self._tensor(self.state.landmarks))
        means, parts = [], []
        for batch in map(self._tensor, batches):
            cross, product = _cross_and_product(batch, with_instances, with_landmarks, solution)
            means.append(mean + product)
            if prior_root is not None:
                parts.append(cross @ prior_root)
            elif inverse_root is not None:
                parts.append(torch.stack([cross @ root for root in inverse_root]))
        rows = self._tensor(X)
        covariance: JointCovariance
        if prior_root is not None and inverse_root is not None:
            features = torch.cat(parts)
            remainder = prior_variances(self.kernel, rows) - features.square().sum(1)
            covariance = LowRankCovariance(features, _inner(prior_root, inverse_root), remainder.clamp_(min=0))
        else:
            if inverse_root is None:
                halves = itertools.islice(self._half_solved(instances, batches), n_classes)
                parts = [torch.stack([torch.cat([part.T for part in half]) for half in halves])]
            prior = kernel_matrix(self.kernel, rows, memory_budget, derivatives=False)
            prior.update()
            covariance = ExactCovariance(prior, torch.cat(parts, 1))
        found = torch.cat(means)
        often = None if counts is None else torch.tensor(counts, device=self.device)
        roots = sampling_root(covariance, found.T[:n_classes], generator, often)
        return found.double().cpu().numpy(), roots.cpu().numpy()

    def _explained_exactly(self, instances: Tensor, batches: list[NDArray[np.floating]]) -> Tensor:
        """Variance k' A_c^-1 k (b, C) that the instances (n, d) explain, for all batches, one factor at a time."""
        halves = self._half_solved(instances, batches)
        return torch.stack([torch.cat([part.square().sum(0) for part in half]) for half in halves], 1)

    def _half_solved(self, instances: Tensor, batches: list[NDArray[np.floating]]) -> Iterator[Iterator[Tensor]]:
        """For each class L_c^-1 k (n, b) of each batch, A_c = L_c L_c'; factors are computed one at a time."""
        K = kernel_matrix(self.kernel, instances, memory_budget=0).dense()

        cross_kernel = CrossKernel(self.kernel, instances)

        def solved(factor: Tensor) -> Iterator[Tensor]:
            for batch in map(self._tensor, batches):
                yield torch.linalg.solve_triangular(factor, cross_kernel(batch).T, upper=False)

        assert self.state.noise is not None
        for noise in self._tensor(self.state.noise).T:
            A = K.clone()
            A.diagonal().add_(noise)
            yield solved(torch.linalg.cholesky(A))

    def _batches(self, X: NDArray[np.floating], batch_size: int) -> list[NDArray[np.floating]]:
        """Rows of X, at most `batch_size` at a time, and so few that the kernel they need fits into `BLOCK_BYTES`."""
        rows = self.state.instances if self.state.landmarks is None else self.state.landmarks
        fit = BLOCK_BYTES // (len(rows) * self.dtype.itemsize)
        return _batches(X, min(batch_size, max(fit, SMALLEST_BATCH)))

    def _tensor(self, array: NDArray[np.floating]) -> Tensor:
        return torch.tensor(array, dtype=self.dtype, device=self.device)


def _batches(X: NDArray[np.floating], step: int) -> list[NDArray[np.floating]]:
    return [X[start : start + step] for start in range(0, len(X), step)]


def _cross_and_product(
    batch: Tensor, with_instances: CrossKernel, with_landmarks: CrossKernel | None, solution: Tensor
) -> tuple[Tensor, Tensor]:
    """The kernel (b, M) that variances need, with landmarks where there are any, and that with instances times a_c."""
    if with_landmarks is not None:
        return with_landmarks(batch), with_instances.multiply(batch, solution)
    cross = with_instances(batch)
    return cross, cross @ solution


def _inner(prior_root: Tensor, inverse_root: Tensor) -> Tensor:
    """S_c (C, k, k), so that F S_c F' is F F' less what is explained, for features F with `prior_root`."""
    explained = torch.linalg.solve_triangular(prior_root.double(), inverse_root.double(), upper=True)
    identity = torch.eye(len(prior_root), dtype=torch.float64, device=prior_root.device)
    inner: Tensor = (identity - explained @ explained.mT).to(prior_root.dtype)
    return inner
