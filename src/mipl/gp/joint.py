"""Roots of joint posterior covariances, from which all instances are drawn together as GPyTorch draws them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from mipl.gp.kernels import KernelMatrix
from mipl.gp.lanczos import by_class, lanczos

__all__ = ["CHOLESKY_SIZE", "ROOT_RANK", "ExactCovariance", "JointCovariance", "LowRankCovariance", "sampling_root"]

# GPyTorch's (linear_operator.settings: max_cholesky_size, max_root_decomposition_size), which the release leaves as
# they are: up to so many instances samples come from a Cholesky factor, above from so many Lanczos steps. They are
# constants, because the rule is there to repeat what GPyTorch does.
CHOLESKY_SIZE = 800
ROOT_RANK = 100
# On the diagonal before a Cholesky factor is taken, relative to the largest prior variance.
JITTER = 1e-6


class JointCovariance(Protocol):
    """Posterior covariances (C, b, b) of b instances in C classes."""

    def multiply(self, V: Tensor) -> Tensor:
        """The covariance of each class times its row of V (C, b)."""
        ...

    def dense(self) -> Tensor:
        """All of them (C, b, b)."""
        ...


class ExactCovariance(NamedTuple):
    """One prior for all classes, less what the training instances explain."""

    prior: KernelMatrix
    explained: Tensor  # (C, b, k), roots

    def multiply(self, V: Tensor) -> Tensor:
        """The covariance of each class times its row of V (C, b); one product with the prior serves all classes."""
        return self.prior.multiply(V) - by_class(self.explained, by_class(self.explained.mT, V))

    def dense(self) -> Tensor:
        """All of them (C, b, b)."""
        return self.prior.dense() - self.explained @ self.explained.mT


class LowRankCovariance(NamedTuple):
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


def sampling_root(
    covariance: JointCovariance, like: Tensor, generator: torch.Generator, counts: Tensor | None = None
) -> Tensor:
    r"""Roots R (C, b, k), so that :math:`R \epsilon` has the covariance that GPyTorch's samples have.

    Up to `CHOLESKY_SIZE` instances that is the covariance itself. Above, it is the covariance on the Krylov space of
    `ROOT_RANK` Lanczos steps and zero beside it: of many weakly correlated instances most of the variance is lost.

    Instances that are drawn several times have equal latent values. With the matrix P of which draw is which instance
    and the diagonal matrix N of their counts, the covariance of all draws is :math:`P \Sigma P^\top`, and its Krylov
    space is :math:`P N^{-1/2}` times that of :math:`N^{1/2} \Sigma N^{1/2}`, on which the steps are taken.

    Parameters
    ----------
    covariance : JointCovariance
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
    if counts is None:
        basis, tridiagonal = lanczos(covariance.multiply, start, ROOT_RANK)
        return basis.mT @ _symmetric_root(tridiagonal).to(like)
    scale = counts.to(like).sqrt()
    basis, tridiagonal = lanczos(_Counted(covariance, scale).multiply, start, ROOT_RANK)
    return (basis / scale).mT @ _symmetric_root(tridiagonal).to(like)


class _Counted(NamedTuple):
    """Covariances whose rows and columns are multiplied by a scale each."""

    covariance: JointCovariance
    scale: Tensor  # (b,)

    def multiply(self, V: Tensor) -> Tensor:
        return self.scale * self.covariance.multiply(self.scale * V)

    def dense(self) -> Tensor:
        return self.scale[:, None] * self.covariance.dense() * self.scale


def _dense_root(S: Tensor) -> Tensor:
    jitter = JITTER * S.diagonal(dim1=1, dim2=2).amax()
    root, failed = torch.linalg.cholesky_ex(S + jitter * torch.eye(S.shape[1], dtype=S.dtype, device=S.device))
    # Rounding of single precision may leave a covariance indefinite.
    return _symmetric_root(S) if failed.any() else root


def _symmetric_root(S: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(S)
    root: Tensor = vectors * values.clamp(min=0).sqrt()[:, None, :]
    return root
