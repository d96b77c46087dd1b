"""Stacking: how far to trust the two experts, from the candidate sets of bags that they have not seen.

False candidates are drawn at random, so the probability that a model gives to a held-out bag's candidate *set* tells
how good and how well calibrated it is; no label is needed. The bag likelihood is fitted without an eighth of the bags;
for these the bag regression has left-out evidence anyway. The weights and the outlier rate of `mipl.baggp.model` are
the most probable ones given the held-out sets, with a log-normal prior on the weights and a logistic-normal one on the
outlier rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from torch import Tensor

from mipl.baggp.blocks import Block
from mipl.baggp.constants import (
    MIN_HELD_OUT,
    OUTLIER_PRECISION,
    PRIOR_OUTLIER_RATE,
    PRIOR_WEIGHT,
    STACKING_TRAINING_SHARE,
    WEIGHT_PRECISION,
)
from mipl.baggp.likelihood import fit_bag_likelihood
from mipl.baggp.model import Stacking
from mipl.baggp.regression import BagRegression

__all__ = ["fit_stacking", "stacking_by_held_out"]


def stacking_by_held_out(
    blocks: Sequence[Block], eigenvalues: Tensor, regression: BagRegression, kappa: float | None
) -> Stacking:
    """Fit the bag likelihood to most of the bags and see what it, and the bag regression, say of the rest.

    Bags must be in random order. With too few of them, the modes of the priors are taken.
    """
    if all(bool(block.candidates.all()) for block in blocks):
        return Stacking(np.zeros(2), 0.0)  # the candidates say nothing
    kept = [max(1, round(STACKING_TRAINING_SHARE * block.n_bags)) for block in blocks]
    counts = [block.n_bags for block in blocks]
    if sum(counts) - sum(kept) < MIN_HELD_OUT:
        return Stacking(np.full(2, PRIOR_WEIGHT), PRIOR_OUTLIER_RATE)
    parts = [block.split(k) for block, k in zip(blocks, kept, strict=True)]
    training = [first for first, _ in parts]
    held_out = [rest for _, rest in parts if rest.n_bags]
    prior = torch.cat([p[:k] for p, k in zip(regression.posterior.split(counts), kept, strict=True)])
    first = torch.cat([z[k:] for z, k in zip(regression.log_evidence.split(counts), kept, strict=True)])
    expert = fit_bag_likelihood(training, eigenvalues * STACKING_TRAINING_SHARE, prior, kappa)
    second = torch.cat([expert.log_evidence(expert.logits(rest.features), rest.offsets) for rest in held_out])
    return fit_stacking(first, second, torch.cat([rest.candidates for rest in held_out]))


def fit_stacking(first: Tensor, second: Tensor, candidates: Tensor) -> Stacking:
    """The most probable weights and outlier rate, given the held-out log evidence (m, q) of both experts."""
    start = np.array([math.log(PRIOR_WEIGHT), math.log(PRIOR_WEIGHT), logit(PRIOR_OUTLIER_RATE)])
    precision = np.array([WEIGHT_PRECISION, WEIGHT_PRECISION, OUTLIER_PRECISION])

    def stacking(x: NDArray[np.float64]) -> Stacking:
        return Stacking(np.exp(x[:2]), float(expit(x[2])))

    def objective(x: NDArray[np.float64]) -> float:
        of_set = (stacking(x).probabilities(first, second) * candidates).sum(dim=1)
        return 0.5 * float(precision @ (x - start) ** 2) - float(torch.log(of_set).sum())

    return stacking(minimize(objective, start, method="Nelder-Mead").x)
