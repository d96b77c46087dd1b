r"""Bag regression: a Gaussian process on the bags' labels that never lets a bag vote for itself.

Every instance takes its *bag's* label information as regression target; the process smooths it over the instance
space, where positives of a class lie together and negatives average out. Leave-one-bag-out predictions f are
calibrated to instance logits :math:`g_{jc} = a_c + b_c f_{jc}`, and the exact bag posterior of these gives the next
targets:

1. start: :math:`t_{bc} = (1[c \in S_b] - \rho) / (1 - \rho)`, :math:`\rho` the chance that a false label is a
   candidate; :math:`b_c = \beta_0 / \mathrm{std}(f_c)`, :math:`a = -\log(\text{mean bag size}) - \beta_0^2/2`;
2. bag posterior P and instance posteriors R from g, with the class offsets o of `mipl.baggp.class_offsets`;
3. regress on P, leave-one-bag-out; fit :math:`a_c, b_c` by logistic regression of R on f; back to 2 until P rests.

How much an instance's place can say of its bag's label differs from data to data, and so does the variance of the
regression function against the targets' noise, :math:`\frac1q (1 - \frac1q)`. A small and a large one are tried. The
large one must earn its keep: it is taken if the candidate sets of left-out bags, whose probability needs no label, are
more probable under it by two standard errors.
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
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.leave_out import BagLeaveOut
from mipl.baggp.platt import fit_logistic, score_moments
from mipl.baggp.shards import Shard, thin_product

__all__ = ["BagRegression", "fit_bag_regression"]

_SMALL_VARIANCE, _LARGE_VARIANCE = 0.01, 0.5
#: Standard errors by which the large variance must be better.
_CLEARLY = 2.0
#: Weights of the log evidence to choose from where it is read as log odds; it is over-confident as a rule.
_TEMPERING = (0.25, 0.35, 0.5, 0.7, 1.0)
_START_SLOPE = 3.0
_MAX_ITERATIONS = 12
_TOLERANCE = 1e-3


class BagRegression(NamedTuple):
    """What the stage learnt.

    coef : (R, q): the score of an instance is features @ coef
    intercept, slope : (q,), (q,): its logit is intercept + slope * score
    offset : (q,): added to the log evidence of a bag
    posterior : (m, q): leave-one-bag-out posterior of the training bags' labels
    log_evidence : (m, q): leave-one-bag-out log evidence, offsets included, over all classes
    """

    coef: Tensor
    intercept: Tensor
    slope: Tensor
    offset: Tensor
    posterior: Tensor
    log_evidence: Tensor


class _RegressionShard:
    """A shard with what the regression keeps of it between steps."""

    scores: Tensor  # (n, q) leave-one-bag-out predictions
    responsibility: Tensor  # (n, q)

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.bag_sums = segment_sum(shard.features, shard.offsets)  # (m, R)

    def factorise(self, eigenvalues: Tensor, noise: float) -> None:
        """Prepare leave-one-bag-out at a noise variance."""
        self.leave_out = BagLeaveOut(self.shard.features, (eigenvalues + noise).rsqrt(), self.shard.offsets)


# ---------------------------------------------------------------- statistics of a shard


def _right_hand_side(part: _RegressionShard, targets: Tensor) -> tuple[Tensor, ...]:
    """Features times targets (R, q); targets (m, q) are equal within a bag, so bag sums of features suffice."""
    return ((part.bag_sums.T @ targets.to(part.bag_sums.dtype)).double(),)


def _leave_one_bag_out(part: _RegressionShard, targets: Tensor, coef: Tensor) -> None:
    shard = part.shard
    y = spread(targets, shard.offsets).to(shard.features.dtype)
    part.scores = part.leave_out.predict(y, thin_product(shard.features, coef.to(y.dtype)))


def _evidence(part: _RegressionShard, intercept: Tensor, slope: Tensor) -> Tensor:
    """Log evidence (m, q) of the bags' labels under the calibrated scores."""
    return bag_evidence(intercept + slope * part.scores.double(), part.shard.offsets).log_evidence


def _assign_instances(part: _RegressionShard, intercept: Tensor, slope: Tensor, posterior: Tensor) -> None:
    logits = intercept + slope * part.scores.double()
    evidence = bag_evidence(logits, part.shard.offsets)
    part.responsibility = instance_posterior(logits, evidence, posterior, part.shard.offsets)


# ---------------------------------------------------------------- solve


def fit_bag_regression(shards: Sequence[Shard], eigenvalues: Tensor) -> BagRegression:
    """Fit to shards whose features have the diagonal Gram matrix `eigenvalues` (R,)."""
    parts = [_RegressionShard(shard) for shard in shards]
    candidates = torch.cat([shard.candidates for shard in shards])
    small, large = (_fit(parts, eigenvalues, variance) for variance in (_SMALL_VARIANCE, _LARGE_VARIANCE))
    gain = _best_tempered(large.log_evidence, candidates) - _best_tempered(small.log_evidence, candidates)
    error = float(gain.std(correction=0)) / math.sqrt(len(gain))
    return large if float(gain.mean()) > _CLEARLY * error else small


def _best_tempered(log_evidence: Tensor, candidates: Tensor) -> Tensor:
    """Log probability (m,) of the candidate sets (m, q), the evidence (m, q) tempered as suits it best."""
    tempered = [set_log_likelihood(weight * log_evidence, candidates) for weight in _TEMPERING]
    return max(tempered, key=lambda scores: float(scores.mean()))


def _fit(parts: Sequence[_RegressionShard], eigenvalues: Tensor, signal_variance: float) -> BagRegression:
    """Fit at one variance of the regression function."""
    shards = [part.shard for part in parts]
    counts = [len(shard.candidates) for shard in shards]
    candidates = torch.cat([shard.candidates for shard in shards])
    sizes = torch.cat([shard.sizes for shard in shards]).double()
    q = candidates.shape[1]
    log_prior = torch.where(candidates, 0.0, -math.inf).double()

    def regress(targets: Tensor, noise: float) -> Tensor:
        """Leave-one-bag-out scores into the parts for bag-level targets (m, q); the coefficients (R, q)."""
        centred = targets - (sizes @ targets) / sizes.sum()
        per_part = centred.split(counts)
        rhs = sum(_right_hand_side(part, t)[0] for part, t in zip(parts, per_part, strict=True))
        coef = rhs / (eigenvalues + noise)[:, None]
        for part, t in zip(parts, per_part, strict=True):
            _leave_one_bag_out(part, t, coef)
        return coef

    def posterior(intercept: Tensor, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        evidence = torch.cat([_evidence(part, intercept, slope) for part in parts])
        offset = class_offsets(evidence, log_prior)
        return label_posterior(evidence + offset, log_prior), evidence + offset, offset

    noise = (1 / q) * (1 - 1 / q) / signal_variance
    targets = _label_information(candidates)
    share = sizes / sizes.sum()
    variance = float((share @ targets.square() - (share @ targets).square()).mean())
    start_noise = max(variance / signal_variance, noise)
    for part in parts:
        part.factorise(eigenvalues, start_noise)
    regress(targets, start_noise)
    slope = _START_SLOPE / score_moments(parts)[2]
    intercept = torch.full_like(slope, -math.log(float(sizes.mean())) - _START_SLOPE**2 / 2)
    P, log_evidence, offset = posterior(intercept, slope)

    for part in parts:
        part.factorise(eigenvalues, noise)
    for _ in range(_MAX_ITERATIONS):
        for part, p in zip(parts, P.split(counts), strict=True):
            _assign_instances(part, intercept, slope, p)
        coef = regress(P, noise)
        intercept, slope = fit_logistic(parts)
        before = P
        P, log_evidence, offset = posterior(intercept, slope)
        if float((P - before).abs().mean()) < _TOLERANCE:
            break
    return BagRegression(coef, intercept, slope, offset, P, log_evidence)


def _label_information(candidates: Tensor) -> Tensor:
    """Targets (m, q) whose mean over false candidates is that of non-candidates; see the start above."""
    q = candidates.shape[1]
    rho = (candidates.sum(dim=1).double().mean() - 1) / (q - 1)
    return (candidates.double() - rho) / (1 - rho).clamp(min=1 / q)
