r"""Bag likelihood: a multinomial-logit Gaussian process with the bags' labels summed out exactly.

Instances have logits :math:`f_j = W^\top \phi_j + \beta` over q classes and "negative",
:math:`\beta_c = \log(0.1/q)`, :math:`\beta_n = \log 0.9`, and weights :math:`W \sim N(0, s^2)`. With a prior
:math:`\pi_{bc}` on each bag's label, zero off its candidates, the posterior mode minimises

.. math::
    J(W) = -\sum_b \log \sum_{c} \pi_{bc} Z_{bc}(W) + \frac{|W|^2}{2 s^2}, \qquad
    Z_{bc} = \prod_j (\kappa p_{jc} + p_{jn}) - \prod_j p_{jn},

where :math:`\kappa > 1` lets a bag hold more than the one positive instance that the likelihood would settle for. The
gradient with respect to f is :math:`p - [R, 1 - \sum_c R_c]`, R being the instance posterior of `mipl.bag_posterior`.
A bag's weight multiplies its term of the sum.

The mode is found by L-BFGS in stages: first with the label posterior held at the prior, so that instances are learnt
from the prior's answer; then on J, with wider and wider priors on W and more and more features, from the principal ones
on: broad structure is settled before detail, and at a fraction of the price. After each stage the class offsets
:math:`o_c` of `mipl.baggp.class_offsets` are set anew from the evidence; the next stage takes :math:`\pi_{bc} e^{o_c}`
for the prior, so that no class swallows the others from stage to stage. In each stage the coordinates are scaled by the
diagonal of the curvature at its start,

.. math:: \sum_j p_{jc} (1 - p_{jc})\, \phi_{jk}^2 + 1 / s^2,

of the instances' log likelihood. As the Gram matrix of the features is nearly diagonal, not much is left of it beside.
What the search of a stage remembers of the curvature, less the prior's part, the next one begins with.

Fits to all bags and without each fold take their evaluations together: the features of a block are multiplied by the
weights of all fits side by side, and BLAS takes far less time for that than for as many thin products. Fits of many
classes have wide products anyway: only as many share a pass as have `SHARED_COLUMNS` columns, by which memory grows.

Outside of training, logits are moderated (`mipl.baggp.model.Expert`) by the posterior variance of the weights,

.. math:: \Big(\iota \sum_i \phi_i \phi_i^\top + I / s^2\Big)^{-1}, \qquad \iota = \rho^2 / 2,

:math:`\iota` being what one training instance tells of the logit at its place. Only its bag's label is known, which an
instance carries with probability :math:`\rho`, the share of positives, and what is seen through such a channel tells
:math:`\rho^2` as much as the instance's own label would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block, Blocks, Column
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.constants import (
    EXPECTED_POSITIVE_SHARE,
    FEWEST_FEATURES,
    LBFGS_GRADIENT,
    MIN_PRIOR,
    NEVER,
    SHARED_COLUMNS,
    STAGES,
    Stage,
)
from mipl.baggp.likelihood_sums import (
    LabelPrior,
    curvature,
    likelihood_statistics,
    moderated_evidence,
    positives,
    thin_scores,
)
from mipl.baggp.model import Expert
from mipl.lbfgs import Minimum, Move, lbfgs_steps
from mipl.progress import SILENT, Phases

__all__ = ["BagLikelihoods", "fit_bag_likelihoods"]

Search: TypeAlias = Generator[NDArray[np.float64], tuple[float, NDArray[np.float64]], Minimum]


class BagLikelihoods(NamedTuple):
    """What F fits learned.

    Attributes
    ----------
    experts : F of Expert
    log_evidence : (m, F, q), what they say of all bags, inside or not, class offsets included
    """

    experts: list[Expert]
    log_evidence: Tensor


def fit_bag_likelihoods(
    blocks: Blocks,
    W: Tensor,
    gram_diagonals: Tensor,
    prior: Tensor,
    candidates: Tensor,
    kappa: float | None = None,
    background: Tensor | None = None,
    stages: Sequence[Stage] = STAGES,
    progress: Phases = SILENT,
) -> BagLikelihoods:
    """Fit to blocks whose features have a nearly diagonal Gram matrix, the principal ones last.

    No fit has an influence on another one, but for rounding.

    Parameters
    ----------
    blocks : Blocks
        Features of all bags.
    W : (m, F)
        How often each bag counts in each fit.
    gram_diagonals : (F, R)
        Of the Gram matrix of each fit, for moderation, which is a little less exact where the matrix is not quite
        diagonal, as that of a part of the bags is not.
    prior : (m, F, q)
        Of the labels, zero off the candidates.
    candidates : (m, F, q) bool
        Which labels are possible, however small their prior.
    kappa : float, default=None
        How readily a bag takes more than one instance for positive; None stands for the square root of q.
    background : (q,) bool, default=None
        The class that no instance carries.
    stages : sequence of Stage, default=STAGES
        What is done one after the other.
    progress : Phases, default=SILENT
        Told how far it is.
    """
    F, q = prior.shape[1:]
    size = max(1, SHARED_COLUMNS // (q + 1))
    steps = sum(stage.iterations for stage in stages)
    found = []
    for i, start in enumerate(range(0, F, size)):
        some = slice(start, start + size)
        given = W[:, some], gram_diagonals[some], prior[:, some], candidates[:, some]
        far = i * steps, -(-F // size) * steps
        found.append(_fit_together(blocks, *given, kappa, background, stages, progress, *far))
    experts = [expert for each in found for expert in each.experts]
    return BagLikelihoods(experts, torch.cat([each.log_evidence for each in found], dim=1))


def _fit_together(
    blocks: Blocks,
    W: Tensor,
    gram: Tensor,
    prior: Tensor,
    candidates: Tensor,
    kappa: float | None,
    background: Tensor | None,
    stages: Sequence[Stage],
    progress: Phases,
    before: int,
    total: int,
) -> BagLikelihoods:
    """Fits that share their passes over the blocks, after `before` of a `total` of iterations."""
    (_, F, q), device = prior.shape, prior.device
    log_kappa = math.log(math.sqrt(q) if kappa is None else kappa)
    bias = _bias(q, background).to(device)
    intercept = bias[:-1] - bias[-1] + log_kappa
    log_prior = torch.log(prior.clamp(min=MIN_PRIOR)).masked_fill(~candidates, -torch.inf)
    known, counted = blocks.rows(candidates), blocks.rows(W)
    offset = torch.zeros(F, q, dtype=torch.float64, device=device)
    weights = torch.zeros(F, q + 1, gram.shape[1], dtype=torch.float64, device=device)
    moves: list[list[Move]] = [[] for _ in range(F)]
    for stage in stages:
        now = torch.softmax(log_prior + offset, dim=2)
        priors = blocks.map(_label_prior, blocks.features, blocks.rows(now), known, counted)
        fixed = {"bias": bias, "log_kappa": log_kappa, "hold_prior": stage.hold_prior, "background": background}
        each = progress.counting("bag likelihood", before, total)
        found = _modes(blocks, priors, weights, moves, stage, fixed, each)
        before += stage.iterations
        weights[:, :, -found.shape[2] :] = found
        scores = blocks.map(thin_scores, blocks.features, weights=found[:, :-1] - found[:, -1:])
        share = torch.divide(*blocks.total(positives, blocks.features, scores, counted, intercept=intercept))
        variance = 1 / (share.square()[:, None] / 2 * gram + 1 / stage.variance)
        reading = {"intercept": intercept, "variance": variance, "background": background}
        evidence = blocks.cat(moderated_evidence, blocks.features, scores, **reading)
        offset = class_offsets(evidence, log_prior, W)
    coef = (weights[:, :-1] - weights[:, -1:]).mT.contiguous()
    experts = [Expert(coef[f], intercept, offset[f], background, variance[f]) for f in range(F)]
    return BagLikelihoods(experts, evidence + offset)


def _bias(q: int, background: Tensor | None) -> Tensor:
    """The fixed biases (q + 1,): positives are rare, and no class is expected more than another."""
    bias = torch.full((q + 1,), math.log(EXPECTED_POSITIVE_SHARE / q), dtype=torch.float64)
    bias[-1] = math.log(1 - EXPECTED_POSITIVE_SHARE)
    if background is not None:
        bias[:-1][background] = NEVER
    return bias


def _label_prior(_: Block, prior: Tensor, candidates: Tensor, counts: Tensor) -> LabelPrior:
    """The priors of a block's bags, which on a cluster are computed where their features are."""
    return LabelPrior.of(prior, candidates, counts)


def _modes(
    blocks: Blocks,
    priors: Column,
    start: Tensor,
    moves: list[list[Move]],
    stage: Stage,
    fixed: dict[str, Any],
    each: Callable[[int], None],
) -> Tensor:
    """The most probable weights (F, q + 1, k) of a stage for the last k features, from weights (F, q + 1, R).

    `moves` are those of the weights in the stage before, with changes of the gradient of the likelihood alone; they are
    replaced by those of this stage.
    """
    rank = start.shape[2]
    first = start[:, :, -min(rank, max(math.ceil(stage.share * rank), FEWEST_FEATURES)) :]
    curvatures = blocks.total(curvature, blocks.features, priors, weights=first, bias=fixed["bias"])
    whitening = (torch.stack(curvatures) + 1 / stage.variance).rsqrt()  # weights are this times coordinates V
    units = whitening.cpu().numpy()
    searches = []
    for i, V in enumerate((first / whitening).cpu().numpy()):
        known = [_in_coordinates(move, units[i], stage.variance) for move in moves[i]]
        moves[i] = []
        searches.append(lbfgs_steps(V, max_iter=stage.iterations, tol=LBFGS_GRADIENT, moves=known, scaled=True))
    asked: dict[int, NDArray[np.float64]] = {i: next(search) for i, search in enumerate(searches)}
    found = torch.empty_like(first)
    rounds = 0
    while asked:
        fits = list(asked)
        weights = torch.from_numpy(np.stack(list(asked.values()))).to(start.device) * whitening[fits]
        sums = blocks.total(likelihood_statistics, blocks.features, priors, fits=fits, weights=weights, **fixed)
        values = torch.stack(sums[: len(fits)]) + weights.square().sum(dim=(1, 2)) / (2 * stage.variance)
        gradients = (torch.stack(sums[len(fits) :]) + weights / stage.variance) * whitening[fits]
        told = zip([searches[i] for i in fits], values.tolist(), gradients.cpu().numpy(), strict=True)
        asked = {}
        for i, reply in zip(fits, blocks.place.each(_tell, told), strict=True):
            if isinstance(reply, Minimum):
                found[i] = torch.from_numpy(reply.point).to(start.device) * whitening[i]
                moves[i] = [_of_weights(move, units[i], stage.variance) for move in reply.moves]
            else:
                asked[i] = reply
        each(min(rounds, stage.iterations))
        rounds += 1
    return found


def _in_coordinates(move: Move, unit: NDArray[np.float64], variance: float) -> Move:
    """A move of the weights of the last features in coordinates (q + 1, k); weights are these times `unit`."""
    point, gradient = np.zeros_like(unit), np.zeros_like(unit)
    k = move.point.shape[1]
    point[:, -k:] = move.point
    gradient[:, -k:] = move.gradient + move.point / variance
    return Move(point / unit, gradient * unit)


def _of_weights(move: Move, unit: NDArray[np.float64], variance: float) -> Move:
    """A move in coordinates as one of the weights, without the prior's part of the gradient; single precision does."""
    point = move.point * unit
    gradient = move.gradient / unit - point / variance
    return Move(point.astype(np.float32), gradient.astype(np.float32))


def _tell(what: tuple[Search, float, NDArray[np.float64]]) -> Minimum | NDArray[np.float64]:
    """Tell a search the value and the gradient that it asked for; where it wants them next, or its end."""
    search, value, gradient = what
    try:
        return search.send((value, gradient))
    except StopIteration as end:
        minimum: Minimum = end.value
        return minimum
