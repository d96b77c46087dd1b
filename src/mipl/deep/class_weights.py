"""FastMIPL's weights of classes: how they score bags, their posterior, its samples and its divergence."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mipl.deep.attention import Segments, attended_scores
from mipl.deep.network import BagScores

__all__ = [
    "JITTER",
    "LogDeterminant",
    "class_scores",
    "divergence",
    "log_determinant",
    "sample_weights",
    "weight_scale",
]

#: The fixed part of every posterior variance.
JITTER = 1e-4


def class_scores(h: Tensor, beta: Tensor, segments: Segments) -> BagScores:
    """Scores (b, q * s) and attention (n, q * s) from hidden vectors (n, L) and s weight vectors (q, 2 L, s) per class.

    The first half of a weight vector attends, the second half, brought to root mean square 1, scores.
    """
    attending, scoring = beta.chunk(2, dim=1)  # (q, L, s) each
    scoring = scoring / weight_scale(beta)[:, None]
    by_column = attending.transpose(0, 1).flatten(1), scoring.transpose(0, 1).flatten(1)  # (L, q * s) each
    return BagScores(*attended_scores(h, *by_column, segments))


def weight_scale(beta: Tensor) -> Tensor:
    """Root mean square (q, s) of the scoring half of weight vectors (q, 2 L, s)."""
    return beta.chunk(2, dim=1)[1].square().mean(dim=1).sqrt()


class LogDeterminant(NamedTuple):
    """The log determinant (q,) of factor factor' + JITTER I, linear around the factor where it was computed."""

    value: Tensor  # (q,)
    gradient: Tensor  # (q, k, k)
    origin: Tensor  # (q, k, k)

    def at(self, factor: Tensor) -> Tensor:
        """The value (q,) near the origin; its gradient is the origin's."""
        return self.value + ((factor - self.origin) * self.gradient).sum(dim=(1, 2))


@torch.no_grad()
def log_determinant(factor: Tensor) -> LogDeterminant:
    """The log determinant of each covariance and its gradient, from factors (q, k, k): one Cholesky per class."""
    covariance = factor @ factor.mT
    covariance.diagonal(dim1=1, dim2=2).add_(JITTER)
    root = torch.linalg.cholesky(covariance)
    value = 2 * root.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    return LogDeterminant(value, 2 * torch.cholesky_solve(factor, root), factor.clone())


def sample_weights(mean: Tensor, factor: Tensor, n_samples: int, noise: torch.Generator | None) -> Tensor:
    """Draws (q, k, n_samples) from N(mean, factor factor' + JITTER I), with means (q, k) and factors (q, k, k).

    The two parts of the covariance are drawn one by one, mean + factor e + sqrt(JITTER) e', so none is factorised.
    Without noise every draw is the mean.
    """
    if noise is None:
        return mean[:, :, None].expand(-1, -1, n_samples)
    size = (2, *mean.shape, n_samples)
    through, aside = torch.randn(size, generator=noise, device=mean.device, dtype=mean.dtype)
    draws: Tensor = mean[:, :, None] + factor @ through + JITTER**0.5 * aside
    return draws


def divergence(mean: Tensor, factor: Tensor, log_det: Tensor, log_scale: Tensor) -> Tensor:
    """KL (q,) of N(mean, factor factor' + JITTER I) from N(0, diag(exp(2 log_scale))), log_scale (q, k)."""
    second_moment = mean.square() + factor.square().sum(dim=2) + JITTER  # (q, k)
    fit = (second_moment * torch.exp(-2 * log_scale) + 2 * log_scale - 1).sum(dim=1)
    return (fit - log_det) / 2
