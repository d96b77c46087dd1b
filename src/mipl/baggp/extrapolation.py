r"""Extrapolation: how far to trust the fit to all bags, from what fits to most of them say of bags not seen.

The stacking (`mipl.baggp.stacking`) is fitted to what fits without a fold say of the bags of the fold. The fit to all
bags knows more bags, and where these are few it is clearly better: with that stacking it would be trusted too little.
How much better it is shows in two ways that need no label. Both multiply the two weights, and change nothing else.

*More bags.* Let r be the label-free score of held-out bags in units of that of bags that the models were fitted to.
With r near one, what was learned holds for all bags, and more of them would not teach much; with r near zero, nothing
has been learned so far. In between, log odds become more reliable with the number of bags m. The scale that suits them
is proportional to m at most, namely where errors of what was learned, whose variance falls as 1/m, are all that is
wrong with them. So with a share t of the bags in each fit, the weights are multiplied by

.. math:: t^{-\gamma}, \qquad \gamma = 4 r (1 - r),

unless fits are to nearly all bags, an eighth held out at a time, which are as good as that to all.

*Fits that failed.* Where candidate sets hardly suffice to tell the classes apart, the fit to all bags may succeed and
those without a fold fail, which then explain not even the sets that they were fitted to. So the bag likelihoods are
compared on bags that they have seen: how much more often is the fit to all bags right about a bag than fits without a
fold are, beyond what its confidence has risen? The most probable label is in the candidate set of a bag by chance with
probability :math:`\rho`, so a share h of such bags means that :math:`(h - \rho) / (1 - \rho)` are right. The weights
are multiplied so that the confidence on held-out bags rises by that gain g, shrunk by its standard error e to
:math:`g\,(1 - (2 e / g)^2)`, if it is above :math:`2 e`.

Where many bags have few groups, nothing is extrapolated: more bags of the same groups teach less about others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from mipl.baggp.constants import BAGS_TO_SCALE, CLEAR_GAIN, MOST_BAGS_PER_GROUP, MOST_EXTRAPOLATION, NEARLY_ALL
from mipl.baggp.cross_fit import HeldOut
from mipl.baggp.model import Stacking
from mipl.baggp.weights import mean_and_error, weighted_mean

__all__ = ["extrapolate", "groups_are_many", "kept_share"]


def groups_are_many(groups: NDArray[np.int64] | None) -> bool:
    """Whether the groups (m,) of bags are so many that holding them out is like holding bags out; None for no groups.

    >>> groups_are_many(np.arange(20) // 2), groups_are_many(np.arange(60) // 20)
    (True, False)
    """
    return groups is None or len(groups) <= MOST_BAGS_PER_GROUP * len(np.unique(groups))


def kept_share(inside: Sequence[Tensor], weight: Tensor | None = None) -> float:
    """The share of the bags that the fit without a bag's fold has seen, on average over bags.

    Parameters
    ----------
    inside : sequence of (m,) bool
        The bags of each fit.
    weight : (m,), default=None
        How often each bag counts; None for once.
    """
    held_out = [1 - float(weighted_mean(each.double(), weight)) for each in inside]
    return 1 - sum(share**2 for share in held_out)


def extrapolate(
    fitted: Stacking,
    held_out: HeldOut,
    ratio: float,
    seen: Tensor,
    seen_without: Sequence[tuple[Tensor, Tensor]],
    log_prior: Tensor,
    weight: Tensor | None = None,
) -> Stacking:
    """The stacking of the fit to all bags.

    Parameters
    ----------
    fitted : Stacking
        That of fits without a fold.
    held_out : HeldOut
        What these say of the bags of their fold.
    ratio : float
        Label-free score of held-out bags over that of bags that were seen, r.
    seen : (m, q)
        Log evidence that the bag likelihood of all bags has for them.
    seen_without : sequence of ((m, q), (m,) bool)
        For each fit without a fold, the same of its bag likelihood, and which bags it was fitted to.
    log_prior : (m, q)
        What is known of the labels.
    weight : (m,), default=None
        How often each bag counts; None for once.
    """
    total = float(fitted.weights.sum())
    known = torch.exp(log_prior - log_prior.amax(dim=1, keepdim=True))
    chance = float(weighted_mean((known.sum(dim=1) - 1) / (known.shape[1] - 1), weight))
    if total == 0 or chance == 1:
        return fitted
    share = kept_share([inside for _, inside in seen_without], weight)

    alone = fitted._replace(weights=np.array([0.0, total]))

    def surplus(log_evidence: Tensor) -> Tensor:
        """How far bags (m,) are right beyond the confidence of the answer; right on average, not bag by bag."""
        confidence, label = alone.probabilities(log_evidence, log_evidence).max(dim=1)
        return (known.gather(1, label[:, None])[:, 0] - chance) / (1 - chance) - confidence

    before = sum(torch.where(inside, surplus(log_evidence), 0.0) for log_evidence, inside in seen_without)
    counts = sum(inside.double() for _, inside in seen_without)
    gain, error = mean_and_error(surplus(seen) - before / counts, weight)
    factor = share ** -(BAGS_TO_SCALE * ratio * (1 - ratio)) if share < NEARLY_ALL else 1.0
    if gain > CLEAR_GAIN * error:
        factor *= _factor_for(gain * (1 - (CLEAR_GAIN * error / gain) ** 2), fitted, held_out, weight)
    return fitted._replace(weights=factor * fitted.weights)


def _factor_for(gain: float, fitted: Stacking, held_out: HeldOut, weight: Tensor | None) -> float:
    """By what the weights are to be multiplied for the confidence on held-out bags to rise by so much."""

    def confidence(log_factor: float) -> float:
        now = fitted._replace(weights=math.exp(log_factor) * fitted.weights)
        return float(weighted_mean(now.probabilities(*held_out).amax(dim=1), weight))

    wanted, most = confidence(0.0) + gain, math.log(MOST_EXTRAPOLATION)
    if confidence(most) <= wanted:
        return MOST_EXTRAPOLATION
    return math.exp(brentq(lambda log_factor: confidence(log_factor) - wanted, 0.0, most, xtol=1e-4))
