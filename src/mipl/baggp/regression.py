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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.bag_posterior import (
    bag_evidence,
    instance_posterior,
    label_posterior,
    set_log_likelihood,
    spread,
)
from mipl.baggp.blocks import Block, Blocks, Column, Place, thin_product
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.constants import (
    CLEARLY_BETTER,
    REGRESSION_ITERATIONS,
    REGRESSION_TOLERANCE,
    SIGNAL_VARIANCES,
    START_SLOPE,
    TEMPERING,
)
from mipl.baggp.leave_out import BagLeaveOut, leave_out_factors
from mipl.baggp.low_rank import Ridge
from mipl.baggp.model import Expert
from mipl.baggp.platt import PlattScaling, fit_platt, score_moments
from mipl.baggp.weights import mean_and_error, weigh, weighted_mean
from mipl.progress import SILENT, Phases

__all__ = ["BagRegression", "OwnVotes", "fit_bag_regression", "own_votes_of_parts"]


class BagRegression(NamedTuple):
    """What was learned.

    Attributes
    ----------
    expert : Expert, for bags that were not in the training set
    posterior : (m, q), leave-one-bag-out posterior of the training bags' labels, in the order of the blocks
    log_evidence : (m, q), leave-one-bag-out log evidence of the training bags, class offsets included, all classes
    signal_variance : float, the variance of the regression function that was taken
    """

    expert: Expert
    posterior: Tensor
    log_evidence: Tensor
    signal_variance: float


class OwnVotes(NamedTuple):
    """What leaves a bag's own vote out of fits with two noises.

    Attributes
    ----------
    start_noise : float, of the start, which has targets of another variance than the rounds
    start, rounds : Column of BagLeaveOut
    """

    start_noise: float
    start: Column
    rounds: Column

    def of(self, selected: Callable[[Column], Column]) -> OwnVotes:
        """Those of some blocks."""
        return OwnVotes(self.start_noise, selected(self.start), selected(self.rounds))


def own_votes_of_parts(
    blocks: Blocks, spectrum: Tensor, log_prior: Tensor, signal_variance: float, share: float
) -> OwnVotes:
    """What leaves a bag's own vote out of fits to a `share` of the bags, whichever these are.

    The diagonal Gram matrix (R,) is that of the bags of the blocks, or of more; `mipl.baggp.leave_out` has the formula.
    """
    share_of_bags = _instance_shares(_bag_sizes(blocks), blocks.weight)
    start, rounds = _noises(log_prior, share_of_bags, blocks.weight, signal_variance)

    def factors(noise: float) -> Column:
        ridge = Ridge.of(share * spectrum, noise)
        return blocks.map(leave_out_factors, blocks.features, ridge=ridge, share=share)

    return OwnVotes(start, factors(start), factors(rounds))


def fit_bag_regression(
    blocks: Blocks,
    gram: Tensor,
    log_prior: Tensor,
    background: Tensor | None = None,
    variances: Sequence[float] = SIGNAL_VARIANCES,
    progress: Phases = SILENT,
    own_votes: OwnVotes | None = None,
) -> BagRegression:
    """Fit to blocks with this Gram matrix, (R, R) or its diagonal (R,), and to what is known of labels (m, q).

    The best of the `variances` is taken. These are in ascending order; a larger one must be clearly better than those
    before it. With `own_votes`, which are of one variance, nothing has to be computed to leave a bag's own vote out.
    """

    def at(variance: float, place: Place) -> BagRegression:
        there = replace(blocks, place=place)
        return _fit(there, gram, log_prior, background, variance, progress, own_votes)

    best: BagRegression
    best, *others = blocks.place.concurrently([partial(at, variance) for variance in variances])
    for other in others:
        gain = _best_tempered(other, log_prior, blocks.weight) - _best_tempered(best, log_prior, blocks.weight)
        mean, error = mean_and_error(gain, blocks.weight)
        if mean > CLEARLY_BETTER * error:
            best = other
    return best


def _best_tempered(found: BagRegression, log_prior: Tensor, weight: Tensor | None) -> Tensor:
    """Log probability (m,) of the candidate sets (m, q), the evidence (m, q) tempered as suits it best."""
    tempered = [set_log_likelihood(factor * found.log_evidence, log_prior) for factor in TEMPERING]
    return max(tempered, key=lambda scores: float(weighted_mean(scores, weight)))


def _fit(
    blocks: Blocks,
    gram: Tensor,
    log_prior: Tensor,
    background: Tensor | None,
    signal_variance: float,
    progress: Phases,
    own_votes: OwnVotes | None,
) -> BagRegression:
    """Fit at one variance of the regression function."""
    weight, sizes = blocks.weight, _bag_sizes(blocks)
    share = _instance_shares(sizes, weight)
    relative_weight = None if weight is None else weight / weight.mean()
    start_noise, noise = _noises(log_prior, share, weight, signal_variance)
    if own_votes is not None:
        start_noise = own_votes.start_noise

    def regress(targets: Tensor, ridge: Ridge, factors: Column) -> tuple[Tensor, Column]:
        """Coefficients (R, q) for targets (m, q), and leave-one-bag-out scores (n_b, q)."""
        centred = blocks.rows(targets - share @ targets)
        (right,) = blocks.total(_right_hand_side, blocks.features, centred)
        coef = ridge.solve(right)
        return coef, blocks.map(_leave_one_bag_out, blocks.features, factors, centred, coef=coef)

    def leave_out(ridge: Ridge) -> Column:
        return blocks.map(leave_out_factors, blocks.features, ridge=ridge)

    def bag_posterior(scores: Column, platt: PlattScaling) -> tuple[Tensor, Tensor, Tensor]:
        """Posterior and log evidence (m, q) of all bags, class offsets included, and these offsets (q,)."""
        evidence = blocks.cat(_log_evidence, blocks.features, scores, platt=platt, background=background)
        offset = class_offsets(evidence, log_prior, weight)
        return label_posterior(evidence + offset, log_prior), evidence + offset, offset

    progress("bag regression", 0, REGRESSION_ITERATIONS)
    ridge = Ridge.of(gram, start_noise)
    targets = _label_information(log_prior, weight)
    _, scores = regress(targets, ridge, leave_out(ridge) if own_votes is None else own_votes.start)
    ridge = Ridge.of(gram, noise)
    factors = leave_out(ridge) if own_votes is None else own_votes.rounds
    slope = START_SLOPE / score_moments(blocks, scores)[2]
    platt = PlattScaling(
        torch.full_like(slope, -math.log(float(weighted_mean(sizes, weight))) - START_SLOPE**2 / 2), slope
    )
    posterior, log_evidence, offset = bag_posterior(scores, platt)
    for i in range(REGRESSION_ITERATIONS):
        progress("bag regression", i, REGRESSION_ITERATIONS)
        carries = blocks.map(
            _responsibilities, blocks.features, scores, blocks.rows(posterior), platt=platt, background=background
        )
        coef, scores = regress(posterior, ridge, factors)
        platt = fit_platt(blocks, scores, carries, platt)
        before = posterior
        posterior, log_evidence, offset = bag_posterior(scores, platt)
        if float(weigh((posterior - before).abs(), relative_weight).mean()) < REGRESSION_TOLERANCE:
            break
    expert = Expert(coef * platt.slope, platt.intercept, offset, background)
    return BagRegression(expert, posterior, log_evidence, signal_variance)


def _bag_sizes(blocks: Blocks) -> Tensor:
    return blocks.cat(_sizes, blocks.features).double()


def _instance_shares(sizes: Tensor, weight: Tensor | None) -> Tensor:
    """The share (m,) of all instances that is in each bag."""
    counted = weigh(sizes, weight)
    return counted / counted.sum()


def _noises(log_prior: Tensor, share: Tensor, weight: Tensor | None, signal_variance: float) -> tuple[float, float]:
    """The noise of the start and that of the rounds.

    The targets of the start have another variance, hence a noise of their own. With that of the rounds, which may be a
    tenth of it, fits to few bags with many false labels mistake classes for others.
    """
    q = log_prior.shape[1]
    noise = (1 / q) * (1 - 1 / q) / signal_variance
    targets = _label_information(log_prior, weight)
    target_variance = float((share @ targets.square() - (share @ targets).square()).mean())
    return max(target_variance / signal_variance, noise), noise


def _label_information(log_prior: Tensor, weight: Tensor | None) -> Tensor:
    """Targets (m, q) whose mean over false candidates is that of non-candidates; see the start above."""
    q = log_prior.shape[1]
    support = torch.exp(log_prior - log_prior.amax(dim=1, keepdim=True))  # one and zero for a plain candidate set
    rho = (weighted_mean(support.sum(dim=1), weight) - 1) / (q - 1)
    return (support - rho) / (1 - rho).clamp(min=1 / q)


# -------------------------------------------------------------------- statistics of one block


def _sizes(block: Block) -> Tensor:
    return block.offsets.diff()


def _right_hand_side(block: Block, targets: Tensor) -> tuple[Tensor, ...]:
    """Features times targets (R, q); targets (m, q) are equal within a bag, so bag sums of features suffice."""
    return ((block.sums.T @ weigh(targets, block.weight).to(block.sums.dtype)).double(),)


def _leave_one_bag_out(block: Block, factors: BagLeaveOut, targets: Tensor, coef: Tensor) -> Tensor:
    y = spread(targets, block.offsets).to(block.features.dtype)
    return factors.predict(block.features, y, thin_product(block.features, coef.to(y.dtype)).contiguous())


def _log_evidence(block: Block, scores: Tensor, platt: PlattScaling, background: Tensor | None) -> Tensor:
    return bag_evidence(platt(scores), block.offsets, background).log_evidence


def _responsibilities(
    block: Block, scores: Tensor, posterior: Tensor, platt: PlattScaling, background: Tensor | None
) -> Tensor:
    """The posterior (n_b, q) that an instance carries each label, in the precision of the scores."""
    logits = platt(scores)
    evidence = bag_evidence(logits, block.offsets, background)
    return instance_posterior(logits, evidence, posterior, block.offsets).to(scores.dtype)
