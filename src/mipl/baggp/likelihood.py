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

Outside of training, logits are moderated (`mipl.baggp.model.Expert`) by the posterior variance of the weights,

.. math:: \Big(\iota \sum_i \phi_i \phi_i^\top + I / s^2\Big)^{-1}, \qquad \iota = \rho^2 / 2,

:math:`\iota` being what one training instance tells of the logit at its place. Only its bag's label is known, which an
instance carries with probability :math:`\rho`, the share of positives, and what is seen through such a channel tells
:math:`\rho^2` as much as the instance's own label would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior, label_posterior, spread
from mipl.baggp.blocks import Block, Blocks, Column, add_up, thin_product
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.constants import (
    CHUNK_ROWS,
    EXPECTED_POSITIVE_SHARE,
    FEWEST_FEATURES,
    LBFGS_GRADIENT,
    MIN_PRIOR,
    NEVER,
    STAGES,
    Stage,
)
from mipl.baggp.model import Expert
from mipl.baggp.weights import weigh
from mipl.lbfgs import minimize_lbfgs
from mipl.progress import SILENT, Phases

__all__ = ["LabelPrior", "fit_bag_likelihood", "likelihood_statistics"]


def fit_bag_likelihood(
    blocks: Blocks,
    gram_diagonal: Tensor,
    prior: Tensor,
    candidates: Tensor,
    kappa: float | None = None,
    background: Tensor | None = None,
    stages: Sequence[Stage] = STAGES,
    progress: Phases = SILENT,
) -> Expert:
    """Fit to blocks whose features have a nearly diagonal Gram matrix, the principal ones last.

    Parameters
    ----------
    blocks : Blocks
        Bags in the order of the prior.
    gram_diagonal : (R,)
        Of the Gram matrix, for moderation, which is a little less exact where the matrix is not quite diagonal, as that
        of a part of the bags is not.
    prior : (m, q)
        Of the bags' labels, zero off the candidates.
    candidates : (m, q) bool
        Which labels are possible, be their prior ever so small.
    kappa : float, default=None
        How readily a bag takes more than one instance for positive; None stands for the square root of q.
    background : (q,) bool, default=None
        The class that no instance carries.
    stages : sequence of Stage, default=STAGES
        What is done one after the other.
    progress : Phases, default=SILENT
        Told of every iteration.
    """
    q = prior.shape[1]
    log_kappa = math.log(math.sqrt(q) if kappa is None else kappa)
    bias = _bias(q, background).to(prior.device)
    log_prior = torch.where(candidates, torch.log(prior.clamp(min=MIN_PRIOR)), -torch.inf)
    offset = torch.zeros(q, dtype=torch.float64, device=prior.device)
    weights = torch.zeros(len(gram_diagonal), q + 1, dtype=torch.float64, device=prior.device)
    total, before = sum(stage.iterations for stage in stages), 0
    for stage in stages:
        now = torch.softmax(log_prior + offset, dim=1)
        priors = blocks.map(_label_prior, blocks.features, blocks.rows(now), blocks.rows(candidates))
        watch = progress.counting("bag likelihood", before, total)
        weights = _mode(blocks, priors, weights, bias, log_kappa, background, stage, watch)
        before += stage.iterations
        mode = Expert(
            coef=weights[:, :-1] - weights[:, -1:],
            intercept=bias[:-1] - bias[-1] + log_kappa,
            class_offset=torch.zeros_like(bias[:-1]),
            background=background,
        )
        logits = blocks.map(_logits, blocks.features, expert=mode)
        positives, instances = blocks.total(_positives, blocks.features, logits)
        information = float(positives / instances) ** 2 / 2
        expert = mode._replace(variance=1 / (information * gram_diagonal + 1 / stage.variance))
        evidence = blocks.cat(_log_evidence, blocks.features, logits, expert=expert)
        offset = class_offsets(evidence, log_prior, blocks.weight)
    return expert._replace(class_offset=offset)


def _bias(q: int, background: Tensor | None) -> Tensor:
    """The fixed biases (q + 1,): positives are rare, and no class is expected more than another."""
    bias = torch.full((q + 1,), math.log(EXPECTED_POSITIVE_SHARE / q), dtype=torch.float64)
    bias[-1] = math.log(1 - EXPECTED_POSITIVE_SHARE)
    if background is not None:
        bias[:-1][background] = NEVER
    return bias


def _label_prior(_: Block, prior: Tensor, candidates: Tensor) -> LabelPrior:
    """The prior of a block's bags, which on a cluster is computed where their features are."""
    return LabelPrior.of(prior, candidates)


def _logits(block: Block, expert: Expert) -> Tensor:
    return expert.logits(block.features)


def _positives(block: Block, logits: Tensor) -> tuple[Tensor, Tensor]:
    """How many instances of a block are positive, as their logits (n_b, q) tell, of how many, both by weight."""
    positive, weight = torch.sigmoid(logits.logsumexp(dim=1)), block.row_weight
    count = torch.tensor(len(positive), dtype=torch.float64) if weight is None else weight.sum()
    return weigh(positive, weight).sum(), count


def _log_evidence(block: Block, logits: Tensor, expert: Expert) -> Tensor:
    return expert.log_evidence(expert.moderate(logits, block.features), block.offsets)


def _mode(
    blocks: Blocks,
    priors: Column,
    start: Tensor,
    bias: Tensor,
    log_kappa: float,
    background: Tensor | None,
    stage: Stage,
    each: Callable[[int], None],
) -> Tensor:
    """The most probable weights (R, q + 1) of a stage."""
    leading = min(len(start), max(math.ceil(stage.share * len(start)), FEWEST_FEATURES))
    first = start[-leading:]
    fixed = {"bias": bias, "log_kappa": log_kappa, "hold_prior": stage.hold_prior, "background": background}
    (curvature,) = blocks.total(_curvature, blocks.features, weights=first, bias=bias)
    whitening = (curvature + 1 / stage.variance).rsqrt()

    def whitened(V: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The objective and its gradient in coordinates V, weights = whitening * V."""
        weights = torch.from_numpy(V).to(start.device) * whitening
        value, gradient = blocks.total(likelihood_statistics, blocks.features, priors, weights=weights, **fixed)
        penalty = (weights * weights).sum() / (2 * stage.variance)
        return float(value + penalty), ((gradient + weights / stage.variance) * whitening).cpu().numpy()

    from_here = (first / whitening).cpu().numpy()
    found = minimize_lbfgs(whitened, from_here, max_iter=stage.iterations, tol=LBFGS_GRADIENT, each=each)
    return torch.cat([start[:-leading], torch.from_numpy(found.point).to(start.device) * whitening])


class LabelPrior(NamedTuple):
    """A prior on the labels of m bags, on candidate columns only: evidence of other labels is never needed.

    Attributes
    ----------
    columns : (m, k) int64, candidate classes, padded by repeating one
    probability : (m, k), zero on the padding
    """

    columns: Tensor
    probability: Tensor

    @classmethod
    def of(cls, prior: Tensor, candidates: Tensor) -> LabelPrior:
        """Take a prior (m, q) at the candidates (m, q), each given at least a little."""
        k = int(candidates.sum(dim=1).max())
        is_candidate, columns = torch.sort(candidates.byte(), dim=1, descending=True, stable=True)
        columns = columns[:, :k]
        probability = prior.gather(1, columns).clamp(min=MIN_PRIOR)
        return cls(columns, torch.where(is_candidate[:, :k].bool(), probability, 0.0))


def likelihood_statistics(
    block: Block,
    prior: LabelPrior,
    weights: Tensor,
    bias: Tensor,
    log_kappa: float,
    hold_prior: bool,
    background: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A block's part of the negative log likelihood, and of its gradient (k, q + 1), at weights (k, q + 1).

    These are the weights of the last k features; the others count for nothing. With `hold_prior` the prior is taken for
    the labels' posterior: the objective is then the expected log evidence.
    """
    features = block.features[:, -len(weights) :]
    f = _all_logits(features, weights, bias)  # (q + 1, n): a short first axis is slow to sum over
    columns = spread(prior.columns, block.offsets)  # (n, k)
    logits = (f.T.gather(1, columns) - f.T[:, -1:]).double() + log_kappa
    evidence = bag_evidence(logits, block.offsets, None if background is None else background[prior.columns])
    if hold_prior:
        posterior = prior.probability
        log_likelihood = weigh(posterior * evidence.log_evidence, block.weight).sum()
    else:
        log_prior = torch.log(prior.probability)
        posterior = label_posterior(evidence.log_evidence, log_prior)
        log_likelihood = weigh(torch.logsumexp(evidence.log_evidence + log_prior, dim=1), block.weight).sum()
    R = instance_posterior(logits, evidence, posterior, block.offsets)  # (n, k)
    log_p = torch.log_softmax(f, dim=0)
    row_weight = block.row_weight
    log_negative = weigh(log_p[-1].double(), row_weight).sum()
    residual = log_p.exp_()
    residual.T.scatter_add_(1, columns, -R.to(residual.dtype))
    residual[-1] -= (1 - R.sum(dim=1)).to(residual.dtype)
    # The long side last: BLAS is ten times slower on features' @ residual.
    if row_weight is not None:
        residual *= row_weight.to(residual.dtype)
    gradient = (residual @ features).T.double()
    return -log_likelihood - log_negative, gradient


def _curvature(block: Block, weights: Tensor, bias: Tensor) -> tuple[Tensor]:
    """The diagonal (k, q + 1) of the instances' curvature at the weights of the last k features."""
    features = block.features[:, -len(weights) :]
    p = torch.softmax(_all_logits(features, weights, bias), dim=0)
    information = p * (1 - p)
    if block.row_weight is not None:
        information *= block.row_weight.to(information.dtype)
    pieces = zip(information.split(CHUNK_ROWS, dim=1), features.split(CHUNK_ROWS), strict=True)
    return (add_up(((part @ chunk.square()).double(),) for part, chunk in pieces)[0].T,)


def _all_logits(features: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Logits (q + 1, n) of all classes and of "negative", from features (n, k) and weights (k, q + 1)."""
    f = thin_product(features, weights.to(features.dtype)).T
    return f + bias.to(features.dtype)[:, None]
