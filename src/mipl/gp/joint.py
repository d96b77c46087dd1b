"""Roots of joint posterior covariances, from which all instances are drawn together as GPyTorch draws them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from linear_operator.utils.lanczos import lanczos_tridiag
from torch import Tensor

from mipl.gp.kernels import KernelMatrix

__all__ = ["CHOLESKY_SIZE", "ROOT_RANK", "JointCovariance", "LowRankPrior", "sampling_root"]

# GPyTorch's (linear_operator.settings: max_cholesky_size, max_root_decomposition_size), which the release leaves as
# they are: up to so many instances samples come from a Cholesky factor, above from so many Lanczos steps. They are
# constants, because the rule is there to repeat what GPyTorch does.
CHOLESKY_SIZE = 800
ROOT_RANK = 100
# On the diagonal before a Cholesky factor is taken, relative to the largest prior variance.
JITTER = 1e-6


class _Prior(Protocol):
    """The prior covariance (b, b) of instances."""

    def multiply(self, V: Tensor) -> Tensor:
        """V times the covariance, for rows V (s, b)."""
        ...

    def dense(self) -> Tensor:
        """All of it (b, b)."""
        ...


class LowRankPrior(NamedTuple):
    """F F' and a diagonal."""

    root: Tensor  # F (b, k)
    diagonal: Tensor  # (b,)

    def multiply(self, V: Tensor) -> Tensor:
        """V times the covariance, for rows V (s, b)."""
        return torch.addmm(V * self.diagonal, V @ self.root, self.root.T)

    def dense(self) -> Tensor:
        """All of it (b, b)."""
        return self.root @ self.root.T + self.diagonal.diag()


class JointCovariance(NamedTuple):
    """Posterior covariances of b instances in C classes: one prior less what the training instances explain."""

    prior: _Prior | KernelMatrix
    explained: Tensor  # (C, b, k), roots

    def multiply(self, V: Tensor) -> Tensor:
        """Covariances times V (C, b, s); one product with the prior serves all classes and vectors."""
        C, b, s = V.shape
        rows = V.permute(2, 0, 1).reshape(s * C, b)
        product = self.prior.multiply(rows).reshape(s, C, b).permute(1, 2, 0)
        return product - self.explained @ (self.explained.mT @ V)

    def dense(self) -> Tensor:
        """All of them (C, b, b)."""
        return self.prior.dense() - self.explained @ self.explained.mT


def sampling_root(covariance: JointCovariance, generator: torch.Generator) -> Tensor:
    r"""Roots R (C, b, k), so that :math:`R \epsilon` has the covariance that GPyTorch's samples have.

    Up to `CHOLESKY_SIZE` instances that is the covariance itself. Above, it is the covariance on the Krylov space of
    `ROOT_RANK` Lanczos steps and zero beside it: of many weakly correlated instances most of the variance is lost.

    Parameters
    ----------
    covariance : JointCovariance
        Of the instances to be drawn.
    generator : torch.Generator
        Source of the start vectors.
    """
    C, b, _ = covariance.explained.shape
    like = covariance.explained
    if b <= CHOLESKY_SIZE:
        return _dense_root(covariance.dense().double()).to(like)
    start = torch.randn(C, b, 1, generator=generator).to(like)
    basis, tridiagonal = lanczos_tridiag(
        covariance.multiply, ROOT_RANK, like.dtype, like.device, torch.Size((b, b)),
        batch_shape=torch.Size((C,)), init_vecs=start,
    )  # fmt: skip
    return basis @ _symmetric_root(tridiagonal.double()).to(like)


def _dense_root(S: Tensor) -> Tensor:
    jitter = JITTER * S.diagonal(dim1=1, dim2=2).amax()
    root, failed = torch.linalg.cholesky_ex(S + jitter * torch.eye(S.shape[1], dtype=S.dtype, device=S.device))
    # Rounding of single precision may leave a covariance indefinite.
    return _symmetric_root(S) if failed.any() else root


def _symmetric_root(S: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(S)
    return vectors * values.clamp(min=0).sqrt()[:, None, :]
