r"""Bag regression: a Gaussian process on the bags' labels in which no bag votes for itself.

Every instance takes its *bag's* label information as regression target; the process smooths it over the instance
space, where positives of a class lie together and negatives average out. Leave-one-bag-out scores f become instance
logits :math:`g_{jc} = a_c + b_c f_{jc}` by Platt scaling, and the exact bag posterior of these gives the next targets:

1. start: :math:`t_{bc} = (1[c \in S_b] - \rho) / (1 - \rho)`, :math:`\rho` the chance that a false label is a
   candidate; :math:`b_c = \beta_0 / \mathrm{std}(f_c)`, :math:`a = -\log(\text{mean bag size}) - \beta_0^2/2`;
2. bag posterior P and instance posteriors R from g, with the class offsets o of `mipl.baggp.class_offsets`;
3. regress on P, leave-one-bag-out; fit :math:`a_c, b_c` by logistic regression of R on f; back to 2 until P converges.

How much an instance's place can say of its bag's label differs from data to data, and so does the variance of the
regression function relative to the targets' noise, :math:`\frac1q (1 - \frac1q)`. A small and a large one are tried.
The large one is taken only if the candidate sets of left-out bags, whose probability needs no label, are more probable
under it by two standard errors.

A bag of weight w counts as w bags in every sum and mean; what is left out of a fit is one bag (`mipl.baggp.leave_out`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.bag_posterior import (
    bag_evidence,
    instance_posterior,
    label_posterior,
    segment_sum,
    set_log_likelihood,
    spread,
)
from mipl.baggp.blocks import Block, bag_weights, mean_and_error, thin_product, total, weigh, weighted_mean
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.constants import (
    CLEARLY_BETTER,
    REGRESSION_ITERATIONS,
    REGRESSION_TOLERANCE,
    SIGNAL_VARIANCES,
    START_SLOPE,
    TEMPERING,
)
from mipl.baggp.leave_out import BagLeaveOut
from mipl.baggp.model import Expert
from mipl.baggp.platt import PlattScaling, fit_platt, score_moments

__all__ = ["BagRegression", "fit_bag_regression"]


class BagRegression(NamedTuple):
    """What was learned.

    Attributes
    ----------
    expert : Expert, for bags that were not in the training set
    posterior : (m, q), leave-one-bag-out posterior of the training bags' labels
    log_evidence : (m, q), leave-one-bag-out log evidence of the training bags, class offsets included, all classes
    signal_variance : float, the variance of the regression function that was taken
    """

    expert: Expert
    posterior: Tensor
    log_evidence: Tensor
    signal_variance: float


def fit_bag_regression(
    blocks: Sequence[Block],
    eigenvalues: Tensor,
    background: Tensor | None = None,
    variances: Sequence[float] = SIGNAL_VARIANCES,
) -> BagRegression:
    """Fit to blocks whose features have the diagonal Gram matrix `eigenvalues` (R,), at the best of the `variances`.

    These are in ascending order; a larger one must be clearly better than those before it.
    """
    log_prior, weight = torch.cat([block.log_prior for block in blocks]), bag_weights(blocks)
    bag_sums = [segment_sum(block.features, block.offsets) for block in blocks]  # (m_b, R) each
    best, *others = (_fit(blocks, bag_sums, eigenvalues, background, variance) for variance in variances)
    for other in others:
        gain = _best_tempered(other, log_prior, weight) - _best_tempered(best, log_prior, weight)
        mean, error = mean_and_error(gain, weight)
        if mean > CLEARLY_BETTER * error:
            best = other
    return best


def _best_tempered(found: BagRegression, log_prior: Tensor, weight: Tensor | None) -> Tensor:
    """Log probability (m,) of the candidate sets (m, q), the evidence (m, q) tempered as suits it best."""
    tempered = [set_log_likelihood(factor * found.log_evidence, log_prior) for factor in TEMPERING]
    return max(tempered, key=lambda scores: float(weighted_mean(scores, weight)))


def _fit(
    blocks: Sequence[Block],
    bag_sums: Sequence[Tensor],
    eigenvalues: Tensor,
    background: Tensor | None,
    signal_variance: float,
) -> BagRegression:
    """Fit at one variance of the regression function."""
    log_prior, weight = torch.cat([block.log_prior for block in blocks]), bag_weights(blocks)
    relative_weight = None if weight is None else weight / weight.mean()
    row_weights = [block.row_weight for block in blocks]
    sizes = torch.cat([block.sizes for block in blocks]).double()
    q = log_prior.shape[1]
    noise = (1 / q) * (1 - 1 / q) / signal_variance

    # The start has targets of another variance, hence a noise of its own.
    targets = _label_information(log_prior, weight)
    share = weigh(sizes, weight)
    share = share / share.sum()
    target_variance = float((share @ targets.square() - (share @ targets).square()).mean())
    start = _Ridge(blocks, bag_sums, eigenvalues, max(target_variance / signal_variance, noise))
    _, scores = start.regress(targets)
    slope = START_SLOPE / score_moments(scores, row_weights)[2]
    platt = PlattScaling(
        torch.full_like(slope, -math.log(float(weighted_mean(sizes, weight))) - START_SLOPE**2 / 2), slope
    )
    posterior, log_evidence, offset = _bag_posterior(blocks, scores, platt, background, log_prior)
    del start

    ridge = _Ridge(blocks, bag_sums, eigenvalues, noise)
    for _ in range(REGRESSION_ITERATIONS):
        responsibilities = _responsibilities(blocks, scores, platt, background, posterior)
        coef, scores = ridge.regress(posterior)
        platt = fit_platt(scores, responsibilities, row_weights)
        before = posterior
        posterior, log_evidence, offset = _bag_posterior(blocks, scores, platt, background, log_prior)
        if float(weigh((posterior - before).abs(), relative_weight).mean()) < REGRESSION_TOLERANCE:
            break
    expert = Expert(coef * platt.slope, platt.intercept, offset, background)
    return BagRegression(expert, posterior, log_evidence, signal_variance)


def _label_information(log_prior: Tensor, weight: Tensor | None) -> Tensor:
    """Targets (m, q) whose mean over false candidates is that of non-candidates; see the start above."""
    q = log_prior.shape[1]
    support = torch.exp(log_prior - log_prior.amax(dim=1, keepdim=True))  # one and zero for a plain candidate set
    rho = (weighted_mean(support.sum(dim=1), weight) - 1) / (q - 1)
    return (support - rho) / (1 - rho).clamp(min=1 / q)


def _bag_posterior(
    blocks: Sequence[Block], scores: Sequence[Tensor], platt: PlattScaling, background: Tensor | None, log_prior: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Posterior and log evidence (m, q) of all bags, class offsets included, and these offsets (q,)."""
    pairs = zip(blocks, scores, strict=True)
    evidence = torch.cat([bag_evidence(platt(s), block.offsets, background).log_evidence for block, s in pairs])
    offset = class_offsets(evidence, log_prior, bag_weights(blocks))
    return label_posterior(evidence + offset, log_prior), evidence + offset, offset


def _responsibilities(
    blocks: Sequence[Block], scores: Sequence[Tensor], platt: PlattScaling, background: Tensor | None, posterior: Tensor
) -> list[Tensor]:
    """Per block the posterior (n_b, q) that an instance carries each label."""
    result = []
    for block, s, p in zip(blocks, scores, posterior.split([block.n_bags for block in blocks]), strict=True):
        logits = platt(s)
        evidence = bag_evidence(logits, block.offsets, background)
        result.append(instance_posterior(logits, evidence, p, block.offsets))
    return result


class _Ridge:
    """Ridge regression of bag-level targets at one noise, read with each bag left out; factors are formed once."""

    def __init__(self, blocks: Sequence[Block], bag_sums: Sequence[Tensor], eigenvalues: Tensor, noise: float) -> None:
        self._blocks, self._bag_sums = blocks, bag_sums
        self._curvature = eigenvalues + noise
        scale = self._curvature.rsqrt()
        self._leave_out = [BagLeaveOut(block.features, scale, block.offsets, block.weight) for block in blocks]
        self._sizes = weigh(torch.cat([block.sizes for block in blocks]).double(), bag_weights(blocks))

    def regress(self, targets: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Coefficients (R, q) for bag-level targets (m, q), and per block leave-one-bag-out scores (n_b, q)."""
        centred = targets - (self._sizes @ targets) / self._sizes.sum()
        parts = centred.split([block.n_bags for block in self._blocks])
        counted = weigh(centred, bag_weights(self._blocks)).split([block.n_bags for block in self._blocks])
        (rhs,) = total(_right_hand_side(s, t) for s, t in zip(self._bag_sums, counted, strict=True))
        coef = rhs / self._curvature[:, None]
        scores = [
            _leave_one_bag_out(block, factors, t, coef)
            for block, factors, t in zip(self._blocks, self._leave_out, parts, strict=True)
        ]
        return coef, scores


def _right_hand_side(bag_sums: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
    """Features times targets (R, q); targets (m, q) are equal within a bag, so bag sums of features suffice."""
    return ((bag_sums.T @ targets.to(bag_sums.dtype)).double(),)


def _leave_one_bag_out(block: Block, factors: BagLeaveOut, targets: Tensor, coef: Tensor) -> Tensor:
    y = spread(targets, block.offsets).to(block.features.dtype)
    return factors.predict(y, thin_product(block.features, coef.to(y.dtype)))
