"""Calibration of scores: one logistic curve a class, fitted by Newton steps on sums over shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from mipl.baggp.shards import total

__all__ = ["HasScores", "fit_logistic", "score_moments"]

_RIDGE = 1e-3
_MIN_VARIANCE = 1e-12
_STEPS = 30
_TOLERANCE = 1e-4
#: Longest step in standardised coordinates; a full Newton step may leap where the curve is flat.
_MAX_STEP = 1.0


class HasScores(Protocol):
    """Instances with scores (n, q) and soft targets (n, q) in [0, 1]."""

    scores: Tensor
    responsibility: Tensor


def fit_logistic(shards: Sequence[HasScores]) -> tuple[Tensor, Tensor]:
    """Intercepts and slopes (q,), (q,) of sigmoid(a + b score), fitted to the soft targets by maximum likelihood.

    Scores are standardised first; a small ridge on the slope keeps separable classes finite.
    """
    count, mean, deviation = score_moments(shards)
    share = total(_target_sum, shards)[0] / count
    a, b = torch.logit(share.clamp(1e-9, 1 - 1e-9)), torch.zeros_like(share)
    for _ in range(_STEPS):
        ga, gb, haa, hab, hbb = total(_newton_sums, shards, a, b, mean, deviation)
        gb, haa, hbb = gb + _RIDGE * count * b, haa + _RIDGE * count, hbb + _RIDGE * count
        determinant = haa * hbb - hab * hab
        step_a, step_b = (hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant
        length = torch.maximum(step_a.abs(), step_b.abs())
        damping = _MAX_STEP / length.clamp(min=_MAX_STEP)
        a, b = a - damping * step_a, b - damping * step_b
        if length.max() < _TOLERANCE:
            break
    slope = b / deviation
    return a - slope * mean, slope


def score_moments(shards: Sequence[HasScores]) -> tuple[Tensor, Tensor, Tensor]:
    """The number of instances, and mean and standard deviation (q,), (q,) of their scores."""
    count, first, second = total(_moments, shards)
    mean = first / count
    return count, mean, (second / count - mean * mean).clamp(min=_MIN_VARIANCE).sqrt()


def _moments(shard: HasScores) -> tuple[Tensor, ...]:
    scores = shard.scores.double()
    return torch.tensor(len(scores), dtype=torch.float64), scores.sum(dim=0), (scores * scores).sum(dim=0)


def _target_sum(shard: HasScores) -> tuple[Tensor, ...]:
    return (shard.responsibility.sum(dim=0, dtype=torch.float64),)


def _newton_sums(shard: HasScores, a: Tensor, b: Tensor, mean: Tensor, deviation: Tensor) -> tuple[Tensor, ...]:
    """Gradient and Hessian of the negative log likelihood with respect to (a, b), each (q,)."""
    x = (shard.scores.double() - mean) / deviation
    p = torch.sigmoid(a + b * x)
    error, weight = p - shard.responsibility, p * (1 - p)
    wx = weight * x
    return error.sum(dim=0), (error * x).sum(dim=0), weight.sum(dim=0), wx.sum(dim=0), (wx * x).sum(dim=0)
