"""Prediction: posterior mean and variance of every class at new instances."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.kernels import KernelMatrix, cross_kernel, kernel_matrix, prior_variances
from mipl.gp.solvers import by_class, lanczos

__all__ = ["Posterior", "PosteriorState"]

# GPyTorch's (linear_operator.settings: max_cholesky_size, max_root_decomposition_size), which the release leaves as
# they are: up to so many instances samples come from a Cholesky factor, above from so many Lanczos steps. They are
# constants, because the rule is there to repeat what GPyTorch does.
CHOLESKY_SIZE = 800
ROOT_RANK = 100
# On the diagonal before a Cholesky factor is taken, relative to the largest prior variance.
JITTER = 1e-6

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
    """

    instances: NDArray[np.floating]
    mean: NDArray[np.float64]
    solution: NDArray[np.floating]
    noise: NDArray[np.float64] | None
    inverse_root: NDArray[np.floating] | None
    prior_root: NDArray[np.floating] | None
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
    def means(self, X: NDArray[np.floating], batch_size: int) -> NDArray[np.float64]:
        """Means (b, C) at instances X (b, d), `batch_size` of them at a time."""
        instances, mean, solution = map(self._tensor, self.state[:3])
        means = [
            mean + cross_kernel(self.kernel, batch, instances) @ solution for batch in self._batches(X, batch_size)
        ]
        return torch.cat(means).double().cpu().numpy()

    @torch.no_grad()
    def moments(self, X: NDArray[np.floating], batch_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and variances (b, C) at instances X (b, d), `batch_size` of them at a time."""
        instances, mean, solution = map(self._tensor, self.state[:3])
        roots = None if self.state.inverse_root is None else self._tensor(self.state.inverse_root)
        means, explained = [], []
        for batch in self._batches(X, batch_size):
            cross = cross_kernel(self.kernel, batch, instances)
            means.append(mean + cross @ solution)
            if roots is not None:
                explained.append(torch.stack([(cross @ root).square().sum(1) for root in roots], 1))
        if roots is None:
            explained = [torch.stack(list(self._half_solved(X, batch_size, lambda half: half.square().sum(0))), 1)]
        variance = (prior_variances(self.kernel, self._tensor(X))[:, None] - torch.cat(explained)).clamp_(min=0)
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
        """Means (b, C) at instances X (b, d), and roots (C, b, k) of their covariances.

        Beside the prior covariance of X, of which `memory_budget` bytes are kept, all roots are held in memory.
        `counts` (b,) says how often each instance is among those that are drawn together; None for once. With
        `n_classes` only the first so many classes have roots.
        """
        instances, mean, solution = map(self._tensor, self.state[:3])
        inverse_root = None if self.state.inverse_root is None else self._tensor(self.state.inverse_root[:n_classes])
        prior_root = None if self.state.prior_root is None else self._tensor(self.state.prior_root)
        means, parts = [], []
        for batch in self._batches(X, batch_size):
            cross = cross_kernel(self.kernel, batch, instances)
            means.append(mean + cross @ solution)
            if prior_root is not None:
                parts.append(cross @ prior_root)
            elif inverse_root is not None:
                parts.append(torch.stack([cross @ root for root in inverse_root]))
        rows = self._tensor(X)
        covariance: _Covariance
        if prior_root is not None and inverse_root is not None:
            features = torch.cat(parts)
            remainder = prior_variances(self.kernel, rows) - features.square().sum(1)
            covariance = _LowRankCovariance(features, _inner(prior_root, inverse_root), remainder.clamp_(min=0))
        else:
            if inverse_root is None:
                parts = [torch.stack(list(itertools.islice(self._half_solved(X, batch_size, torch.t), n_classes)))]
            prior = kernel_matrix(self.kernel, rows, memory_budget, derivatives=False)
            prior.update()
            covariance = _ExactCovariance(prior, torch.cat(parts, 1))
        mean_rows = torch.cat(means)
        often = None if counts is None else torch.tensor(counts, device=self.device)
        roots = _sampling_root(covariance, mean_rows.T[:n_classes], generator, often)
        return mean_rows.double().cpu().numpy(), roots.cpu().numpy()

    def _half_solved(
        self, X: NDArray[np.floating], batch_size: int, taken: Callable[[Tensor], Tensor]
    ) -> Iterator[Tensor]:
        """For each class, what is `taken` of L_c^-1 k (n, b), A_c = L_c L_c'; factors are computed one at a time."""
        instances = self._tensor(self.state.instances)
        K = kernel_matrix(self.kernel, instances, memory_budget=0).dense()
        assert self.state.noise is not None
        for noise in self._tensor(self.state.noise).T:
            A = K.clone()
            A.diagonal().add_(noise)
            factor = torch.linalg.cholesky(A)
            crosses = (cross_kernel(self.kernel, batch, instances).T for batch in self._batches(X, batch_size))
            yield torch.cat([taken(torch.linalg.solve_triangular(factor, cross, upper=False)) for cross in crosses])

    def _batches(self, X: NDArray[np.floating], batch_size: int) -> Iterator[Tensor]:
        """Rows of X, at most `batch_size` at a time, and so few that the kernel they need fits into `BLOCK_BYTES`."""
        fit = BLOCK_BYTES // (len(self.state.instances) * self.dtype.itemsize)
        step = min(batch_size, max(fit, SMALLEST_BATCH))
        return (self._tensor(X[start : start + step]) for start in range(0, len(X), step))

    def _tensor(self, array: NDArray[np.floating]) -> Tensor:
        return torch.tensor(array, dtype=self.dtype, device=self.device)


# -------------------------------------------------------------------- joint covariances


def _inner(prior_root: Tensor, inverse_root: Tensor) -> Tensor:
    """S_c (C, k, k), so that F S_c F' is F F' less what is explained, for features F with `prior_root`."""
    explained = torch.linalg.solve_triangular(prior_root.double(), inverse_root.double(), upper=True)
    identity = torch.eye(len(prior_root), dtype=torch.float64, device=prior_root.device)
    inner: Tensor = (identity - explained @ explained.mT).to(prior_root.dtype)
    return inner


class _ExactCovariance(NamedTuple):
    """One prior for all classes, less what the training instances explain."""

    prior: KernelMatrix
    explained: Tensor  # (C, b, k), roots

    def multiply(self, V: Tensor) -> Tensor:
        """The covariance of each class times its row of V (C, b); one product with the prior serves all classes."""
        return self.prior.multiply(V) - by_class(self.explained, by_class(self.explained.mT, V))

    def dense(self) -> Tensor:
        """All of them (C, b, b)."""
        return self.prior.dense() - self.explained @ self.explained.mT


class _LowRankCovariance(NamedTuple):
    """F S_c F' and a diagonal, with features F that all classes share."""

    features: Tensor  # F (b, k)
    inner: Tensor  # S_c (C, k, k), symmetric
    diagonal: Tensor  # (b,)

    def multiply(self, V: Tensor) -> Tensor:
        """The covariance of each class times its row of V (C, b)."""
        return torch.addmm(V * self.diagonal, by_class(self.inner, V @ self.features), self.features.T)

    def dense(self) -> Tensor:
        """All of them (C, b, b)."""
        return self.features @ self.inner @ self.features.T + self.diagonal.diag()


_Covariance = _ExactCovariance | _LowRankCovariance


def _sampling_root(
    covariance: _Covariance, like: Tensor, generator: torch.Generator, counts: Tensor | None = None
) -> Tensor:
    r"""Roots R (C, b, k), so that :math:`R \epsilon` has the covariance that GPyTorch's samples have.

    Up to `CHOLESKY_SIZE` instances that is the covariance itself. Above, it is the covariance on the Krylov space of
    `ROOT_RANK` Lanczos steps and zero beside it: of many weakly correlated instances most of the variance is lost.

    Instances that are drawn several times have equal latent values. With the matrix P of which draw is which instance
    and the diagonal matrix N of their counts, the covariance of all draws is :math:`P \Sigma P^\top`, and its Krylov
    space is :math:`P N^{-1/2}` times that of :math:`N^{1/2} \Sigma N^{1/2}`, on which the steps are taken.

    Parameters
    ----------
    covariance : _ExactCovariance or _LowRankCovariance
        Of the instances to be drawn.
    like : (C, b) tensor
        Tells shape, precision and device.
    generator : torch.Generator
        Source of the start vectors.
    counts : (b,) tensor of int, default=None
        How often each instance is drawn; None for once.
    """
    if (like.shape[1] if counts is None else int(counts.sum())) <= CHOLESKY_SIZE:
        return _dense_root(covariance.dense().double()).to(like)
    start = torch.randn(like.shape, generator=generator).to(like)
    scale = like.new_ones(1) if counts is None else counts.to(like).sqrt()
    basis, tridiagonal = lanczos(lambda V: scale * covariance.multiply(scale * V), start, ROOT_RANK)
    return (basis / scale).mT @ _symmetric_root(tridiagonal).to(like)


def _dense_root(S: Tensor) -> Tensor:
    jitter = JITTER * S.diagonal(dim1=1, dim2=2).amax()
    root, failed = torch.linalg.cholesky_ex(S + jitter * torch.eye(S.shape[1], dtype=S.dtype, device=S.device))
    # Rounding of single precision may leave a covariance indefinite.
    return _symmetric_root(S) if failed.any() else root


def _symmetric_root(S: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(S)
    root: Tensor = vectors * values.clamp(min=0).sqrt()[:, None, :]
    return root
