"""Platt scaling: one logistic curve per class from scores to probabilities, fitted by Newton steps on sums."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mipl.baggp.blocks import Block, Blocks, Column
from mipl.baggp.constants import (
    MIN_SCORE_VARIANCE,
    PLATT_JITTER,
    PLATT_MAX_STEP,
    PLATT_RIDGE,
    PLATT_STEPS,
    PLATT_TOLERANCE,
)
from mipl.baggp.weights import weigh

__all__ = ["PlattScaling", "fit_platt", "score_moments"]


class PlattScaling(NamedTuple):
    """The logit of a score is intercept + slope * score, class by class; both are (q,)."""

    intercept: Tensor
    slope: Tensor

    def __call__(self, scores: Tensor) -> Tensor:
        """Logits (n, q) of scores (n, q)."""
        return self.intercept + self.slope * scores.double()


def fit_platt(blocks: Blocks, scores: Column, targets: Column, start: PlattScaling | None = None) -> PlattScaling:
    """Fit sigmoid(intercept + slope * score) to soft targets by maximum likelihood.

    Parameters
    ----------
    blocks : Blocks
        Whose scores these are.
    scores, targets : Column of (n_b, q)
        Targets are in [0, 1]. Scores are standardised first; a small ridge on the slope keeps separable classes finite.
    start : PlattScaling, default=None
        Where the search begins, which changes the number of steps alone; None for curves without a slope.
    """
    count, mean, deviation = score_moments(blocks, scores)
    if start is None:
        share = blocks.total(_sum, blocks.features, targets)[0] / count
        a, b = torch.logit(share.clamp(1e-9, 1 - 1e-9)), torch.zeros_like(share)
    else:
        a, b = start.intercept + start.slope * mean, start.slope * deviation
    for _ in range(PLATT_STEPS):
        sums = blocks.total(_newton_sums, blocks.features, scores, targets, a=a, b=b, mean=mean, deviation=deviation)
        ga, gb, haa, hab, hbb = sums
        gb, haa, hbb = gb + PLATT_RIDGE * count * b, haa + PLATT_JITTER * count, hbb + PLATT_RIDGE * count
        determinant = haa * hbb - hab * hab
        step_a, step_b = (hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant
        length = torch.maximum(step_a.abs(), step_b.abs())
        damping = PLATT_MAX_STEP / length.clamp(min=PLATT_MAX_STEP)
        a, b = a - damping * step_a, b - damping * step_b
        if length.max() < PLATT_TOLERANCE:
            break
    slope = b / deviation
    return PlattScaling(a - slope * mean, slope)


def score_moments(blocks: Blocks, scores: Column) -> tuple[Tensor, Tensor, Tensor]:
    """The number of instances, by weight, and mean and standard deviation (q,), (q,) of their scores."""
    count, first, second = blocks.total(_moments, blocks.features, scores)
    mean = first / count
    return count, mean, (second / count - mean * mean).clamp(min=MIN_SCORE_VARIANCE).sqrt()


def _sum(block: Block, values: Tensor) -> tuple[Tensor, ...]:
    return (weigh(values, block.row_weight).sum(dim=0, dtype=torch.float64),)


def _moments(block: Block, scores: Tensor) -> tuple[Tensor, ...]:
    scores, weight = scores.double(), block.row_weight
    count = torch.tensor(len(scores), dtype=torch.float64) if weight is None else weight.sum()
    return count, weigh(scores, weight).sum(dim=0), weigh(scores * scores, weight).sum(dim=0)


def _newton_sums(
    block: Block, scores: Tensor, targets: Tensor, a: Tensor, b: Tensor, mean: Tensor, deviation: Tensor
) -> tuple[Tensor, ...]:
    """Gradient and Hessian of the negative log likelihood with respect to (a, b), each (q,)."""
    slope = (b / deviation).to(scores.dtype)
    p = torch.sigmoid(torch.addcmul((a - b * mean / deviation).to(scores.dtype), scores, slope))
    x = (scores - mean.to(scores.dtype)).div_(deviation.to(scores.dtype))
    count = block.row_weight
    error, weight = weigh(p - targets.to(scores.dtype), count), weigh(p * (1 - p), count)
    wx = weight * x
    sums = (error, error * x, weight, wx, wx * x)
    return tuple(each.sum(dim=0, dtype=torch.float64) for each in sums)
