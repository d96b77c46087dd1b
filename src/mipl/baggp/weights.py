"""Weights of bags: how often each counts in sums and means."""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ["mean_and_error", "weigh", "weighted_mean"]


def weigh(values: Tensor, weight: Tensor | None) -> Tensor:
    """Values (n,) or (n, k) times the weights (n,) of their rows; None leaves them as they are."""
    if weight is None:
        return values
    weight = weight.to(values.dtype)
    return values * (weight if values.ndim == 1 else weight[:, None])


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """The mean over rows of values (n,) or (n, k), each counted by its weight (n,)."""
    return values.mean(dim=0) if weight is None else weigh(values, weight).sum(dim=0) / weight.sum()


def mean_and_error(values: Tensor, weight: Tensor | None) -> tuple[float, float]:
    """The mean of values (m,), each counted by its weight (m,), and its standard error."""
    if weight is None:
        return float(values.mean()), float(values.std(correction=0)) / math.sqrt(len(values))
    mean = weighted_mean(values, weight)
    variance = float(weighted_mean((values - mean).square(), weight))
    return float(mean), math.sqrt(variance / float(weight.sum()))
