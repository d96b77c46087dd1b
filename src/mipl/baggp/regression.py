r"""Bag regression: a Gaussian process on the bags' labels in which no bag votes for itself.

Every instance takes its *bag's* label information as regression target; the process smooths it over the instance
space, where positives of a class lie together and negatives average out. Leave-one-bag-out scores f of a class become
instance logits on a curve that is the same for all data, in standard deviations of the scores,

.. math:: g_{jc} = a + b\, \frac{f_{jc} - \mathrm{mean}(f_c)}{\mathrm{std}(f_c)}, \qquad
    a = -\log(\text{mean bag size}) - b^2 / 2, \quad b = 2,

and the exact bag posterior of these gives the next targets:

1. start: :math:`t_{bc} = (1[c \in S_b] - \rho) / (1 - \rho)`, :math:`\rho` the chance that a false label is a
   candidate;
2. bag posterior P from g, with the class offsets o of `mipl.baggp.class_offsets`;
3. regress on P, leave-one-bag-out; back to 2 until P converges.

A curve fitted to the responsibilities of the previous one would be the natural choice, and it unlearns: where an
instance says little, each curve is flatter than the one before, until nothing is left.

Several fits share each pass: they differ in the weights W (m, F) of the bags, zero for bags that are held out. These
are read as new bags are; what is left out of a fit for a bag inside is one bag (`mipl.baggp.leave_out`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.bag_posterior import bag_evidence, label_posterior, spread
from mipl.baggp.blocks import Block, Blocks, Column, thin_product
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.constants import (
    MIN_SCORE_VARIANCE,
    REGRESSION_ITERATIONS,
    REGRESSION_TOLERANCE,
    SHARE_STEPS,
    SLOPE,
    START_VARIANCE,
)
from mipl.baggp.leave_out import BagLeaveOut, leave_out_factors
from mipl.baggp.low_rank import Ridge
from mipl.baggp.model import Expert
from mipl.progress import SILENT, Phases

__all__ = ["BagRegressions", "fit_bag_regressions"]


class BagRegressions(NamedTuple):
    """What F fits learned.

    Attributes
    ----------
    experts : F of Expert
    log_evidence : (m, F, q), of all bags by fits that have not seen their labels, class offsets included
    """

    experts: list[Expert]
    log_evidence: Tensor


def fit_bag_regressions(
    blocks: Blocks,
    W: Tensor,
    grams: Sequence[Tensor],
    spectrum: Tensor,
    log_prior: Tensor,
    signal_variance: float,
    background: Tensor | None = None,
    progress: Phases = SILENT,
) -> BagRegressions:
    """Fit to blocks with weights W (m, F), given what is known of labels (m, q).

    Parameters
    ----------
    blocks : Blocks
        Features of all bags.
    W : (m, F)
        How often each bag counts in each fit.
    grams : F of (R, R) or (R,)
        The Gram matrix of each fit, or its diagonal where it is diagonal.
    spectrum : (R,)
        The diagonal of the Gram matrix of all bags, which is diagonal.
    log_prior : (m, q)
        What is known of the labels, -inf for what is impossible.
    signal_variance : float
        Variance of the regression function, in units of the targets' variance.
    background : (q,) bool, default=None
        The class that no instance carries.
    progress : Phases, default=SILENT
        Told how far it is.
    """
    F, q = W.shape[1], log_prior.shape[1]
    counts, known = blocks.rows(W), log_prior[:, None].expand(-1, F, -1)
    sizes = blocks.cat(_sizes, blocks.features).double()
    n_instances = (sizes @ W)[:, None]
    share = W * sizes[:, None] / n_instances.T  # of the instances of a fit, in each bag
    level = torch.log(W.sum(dim=0)[:, None] / n_instances) - SLOPE**2 / 2
    of_share = _fits_by_share(grams, spectrum)

    def at(noise: float) -> tuple[list[Ridge], Column]:
        """What solves for coefficients, and what leaves a bag's own vote out."""
        whiten = {kept: Ridge.of(kept * spectrum, noise) for kept in of_share}
        return [Ridge.of(gram, noise) for gram in grams], blocks.map(_left_out, blocks.features, whiten=whiten)

    def regress(targets: Tensor, ridges: list[Ridge], left_out: Column) -> tuple[Tensor, Tensor, Tensor]:
        """Coefficients (F, R, q) and intercepts (F, q) of instance logits, and log evidence (m, F, q)."""
        centred = blocks.rows(targets - torch.einsum("mf,mfq->fq", share, targets))
        (right,) = blocks.total(_right_hand_sides, blocks.features, counts, centred)
        coef = torch.stack([ridge.solve(right[:, f]) for f, ridge in enumerate(ridges)])
        fits = list(of_share.values())
        scores = blocks.map(_leave_one_bag_out, blocks.features, left_out, counts, centred, coef=coef, fits=fits)
        mean, square = (each / n_instances for each in blocks.total(_moments, blocks.features, counts, scores))
        slope = SLOPE / (square - mean.square()).clamp(min=MIN_SCORE_VARIANCE).sqrt()
        curve = {"slope": slope, "intercept": level - slope * mean}
        evidence = blocks.cat(_log_evidence, blocks.features, scores, background=background, **curve)
        return coef * slope[:, None], curve["intercept"], evidence

    targets = _label_information(known, W)
    mean, square = (torch.einsum("mf,mfq->fq", share, each) for each in (targets, targets.square()))
    target_variance = (1 / q) * (1 - 1 / q)
    start_variance = max(float((square - mean.square()).mean()), target_variance)
    progress("bag regression", 0, REGRESSION_ITERATIONS)
    *_, evidence = regress(targets, *at(start_variance / START_VARIANCE))
    offset = class_offsets(evidence, known, W)
    posterior = label_posterior(evidence + offset, known)
    solver = at(target_variance / signal_variance)
    for i in range(REGRESSION_ITERATIONS):
        progress("bag regression", i, REGRESSION_ITERATIONS)
        before = posterior
        coef, intercept, evidence = regress(posterior, *solver)
        offset = class_offsets(evidence, known, W)
        posterior = label_posterior(evidence + offset, known)
        change = torch.einsum("mf,mfq->f", W / W.sum(dim=0), (posterior - before).abs()) / q
        if float(change.max()) < REGRESSION_TOLERANCE:
            break
    experts = [Expert(coef[f], intercept[f], offset[f], background) for f in range(F)]
    return BagRegressions(experts, evidence + offset)


def _fits_by_share(grams: Sequence[Tensor], spectrum: Tensor) -> dict[float, list[int]]:
    """The fits by the share of all instances that they have, in steps; those of one share leave bags out alike."""
    fits: dict[float, list[int]] = {}
    for f, gram in enumerate(grams):
        kept = float((gram if gram.ndim == 1 else gram.diagonal()).sum() / spectrum.sum())
        fits.setdefault(max(round(kept * SHARE_STEPS), 1) / SHARE_STEPS, []).append(f)
    return fits


def _label_information(log_prior: Tensor, W: Tensor) -> Tensor:
    """Targets (m, F, q) whose mean over false candidates is that of non-candidates; see the start above."""
    q = log_prior.shape[2]
    support = torch.exp(log_prior - log_prior.amax(dim=2, keepdim=True))  # one and zero for a plain candidate set
    rho = ((torch.einsum("mf,mfq->f", W, support) / W.sum(dim=0) - 1) / (q - 1))[:, None]
    return (support - rho) / (1 - rho).clamp(min=1 / q)


# -------------------------------------------------------------------- statistics of one block


def _sizes(block: Block) -> Tensor:
    return block.offsets.diff()


def _left_out(block: Block, whiten: dict[float, Ridge]) -> list[BagLeaveOut]:
    """What leaves a bag's own vote out, for each share of the bags that fits have."""
    return [leave_out_factors(block, ridge, share) for share, ridge in whiten.items()]


def _right_hand_sides(block: Block, counts: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
    """Features times targets (R, F, q); targets (m, F, q) are equal within a bag, so bag sums of features suffice."""
    weighted = (counts[:, :, None] * targets).flatten(1).to(block.sums.dtype)
    return ((block.sums.T @ weighted).double().view(-1, *targets.shape[1:]),)


def _leave_one_bag_out(
    block: Block, factors: list[BagLeaveOut], counts: Tensor, targets: Tensor, coef: Tensor, fits: list[list[int]]
) -> Tensor:
    """Scores (n_b, F, q) by fits without the bag, of `fits` that share the same factors."""
    F, R, q = coef.shape
    dtype = block.features.dtype
    scores = thin_product(block.features, coef.permute(1, 0, 2).reshape(R, F * q).to(dtype)).contiguous().view(-1, F, q)
    for each, group in zip(factors, fits, strict=True):
        inside = [f for f in group if bool(counts[:, f].any())]
        if inside:
            y = spread(targets[:, inside].flatten(1), block.offsets).to(dtype)
            left_out = each.predict(block.features, y, scores[:, inside].flatten(1)).view(-1, len(inside), q)
            own = spread(counts[:, inside], block.offsets)[:, :, None] > 0
            scores[:, inside] = torch.where(own, left_out, scores[:, inside])
    return scores


def _moments(block: Block, counts: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
    """Sums (F, q) of scores and of their squares, by weight."""
    weight = spread(counts, block.offsets)[:, :, None]
    weighted = weight * scores
    return weighted.sum(dim=0), (weighted * scores).sum(dim=0)


def _log_evidence(block: Block, scores: Tensor, slope: Tensor, intercept: Tensor, background: Tensor | None) -> Tensor:
    logits = (intercept + slope * scores).flatten(1)
    mask = None if background is None else background.repeat(len(slope))
    return bag_evidence(logits, block.offsets, mask).log_evidence.view(-1, *slope.shape)
