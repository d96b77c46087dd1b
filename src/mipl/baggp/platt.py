"""Platt scaling: one logistic curve per class from scores to probabilities, fitted by Newton steps on sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.baggp.blocks import total, weigh
from mipl.baggp.constants import MIN_SCORE_VARIANCE, PLATT_MAX_STEP, PLATT_RIDGE, PLATT_STEPS, PLATT_TOLERANCE

__all__ = ["PlattScaling", "fit_platt", "score_moments"]


class PlattScaling(NamedTuple):
    """The logit of a score is intercept + slope * score, class by class; both are (q,)."""

    intercept: Tensor
    slope: Tensor

    def __call__(self, scores: Tensor) -> Tensor:
        """Logits (n, q) of scores (n, q)."""
        return self.intercept + self.slope * scores.double()


def fit_platt(
    scores: Sequence[Tensor], targets: Sequence[Tensor], weights: Sequence[Tensor | None] | None = None
) -> PlattScaling:
    """Fit sigmoid(intercept + slope * score) to soft targets by maximum likelihood.

    Parameters
    ----------
    scores, targets : per block (n_b, q), targets in [0, 1]
        Scores are standardised first; a small ridge on the slope keeps separable classes finite.
    weights : per block (n_b,) or None, default=None
        How often each instance counts; None for once.
    """
    weights = [None] * len(scores) if weights is None else weights
    count, mean, deviation = score_moments(scores, weights)
    sums = ((weigh(t, w).sum(dim=0, dtype=torch.float64),) for t, w in zip(targets, weights, strict=True))
    share = total(sums)[0] / count
    a, b = torch.logit(share.clamp(1e-9, 1 - 1e-9)), torch.zeros_like(share)
    for _ in range(PLATT_STEPS):
        blocks = zip(scores, targets, weights, strict=True)
        ga, gb, haa, hab, hbb = total(_newton_sums(s, t, w, a, b, mean, deviation) for s, t, w in blocks)
        gb, haa, hbb = gb + PLATT_RIDGE * count * b, haa + PLATT_RIDGE * count, hbb + PLATT_RIDGE * count
        determinant = haa * hbb - hab * hab
        step_a, step_b = (hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant
        length = torch.maximum(step_a.abs(), step_b.abs())
        damping = PLATT_MAX_STEP / length.clamp(min=PLATT_MAX_STEP)
        a, b = a - damping * step_a, b - damping * step_b
        if length.max() < PLATT_TOLERANCE:
            break
    slope = b / deviation
    return PlattScaling(a - slope * mean, slope)


def score_moments(
    scores: Sequence[Tensor], weights: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The number of instances, by weight, and mean and standard deviation (q,), (q,) of their scores."""
    weights = [None] * len(scores) if weights is None else weights
    count, first, second = total(_moments(s, w) for s, w in zip(scores, weights, strict=True))
    mean = first / count
    return count, mean, (second / count - mean * mean).clamp(min=MIN_SCORE_VARIANCE).sqrt()


def _moments(scores: Tensor, weight: Tensor | None) -> tuple[Tensor, ...]:
    scores = scores.double()
    count = torch.tensor(len(scores), dtype=torch.float64) if weight is None else weight.sum()
    return count, weigh(scores, weight).sum(dim=0), weigh(scores * scores, weight).sum(dim=0)


def _newton_sums(
    scores: Tensor, targets: Tensor, count: Tensor | None, a: Tensor, b: Tensor, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, ...]:
    """Gradient and Hessian of the negative log likelihood with respect to (a, b), each (q,)."""
    x = (scores.double() - mean) / deviation
    p = torch.sigmoid(a + b * x)
    error, weight = weigh(p - targets, count), weigh(p * (1 - p), count)
    wx = weight * x
    return error.sum(dim=0), (error * x).sum(dim=0), weight.sum(dim=0), wx.sum(dim=0), (wx * x).sum(dim=0)
