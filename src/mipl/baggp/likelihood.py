r"""Bag likelihood: a multinomial-logit Gaussian process with the bags' labels summed out exactly.

Instances have logits :math:`f_j = W^\top \phi_j + \beta` over q classes and "negative",
:math:`\beta_c = \log(0.1/q)`, :math:`\beta_n = \log 0.9`, and weights :math:`W \sim N(0, s^2)`. With a prior
:math:`\pi_{bc}` on each bag's label, zero off its candidates, the posterior mode minimises

.. math::
    J(W) = -\sum_b \log \sum_{c} \pi_{bc} Z_{bc}(W) + \frac{|W|^2}{2 s^2}, \qquad
    Z_{bc} = \prod_j (\kappa p_{jc} + p_{jn}) - \prod_j p_{jn},

where :math:`\kappa > 1` lets a bag hold more than the one positive instance that the likelihood would settle for. The
gradient with respect to f is :math:`p - [R, 1 - \sum_c R_c]`, R being the instance posterior of `mipl.bag_posterior`.

The mode is found by L-BFGS in coordinates in which the curvature at W = 0 is nearly the identity, in stages: first with
the label posterior held at the prior, so that instances are learnt from the prior's answer; then on J, with wider and
wider priors on W: broad structure is settled before detail. After each stage the class offsets :math:`o_c` of
`mipl.baggp.class_offsets` are set anew from the evidence; the next stage takes :math:`\pi_{bc} e^{o_c}` for the prior,
so that no class swallows the others from stage to stage.

Outside of training, logits are averaged over what the weights may be. The posterior variance of an instance's logit is

.. math:: v_j = \phi_j^\top \Big(\iota \sum_i \phi_i \phi_i^\top + I / s^2\Big)^{-1} \phi_j, \qquad
    \iota = \rho^2 / 2,

:math:`\iota` being what one training instance tells of the logit at its place. Only its bag's label is known, which an
instance carries with probability :math:`\rho`, the share of positives, and what is seen through such a channel tells
:math:`\rho^2` as much as the instance's own label would. The logit is divided by :math:`\sqrt{1 + \pi v_j / 8}`
(MacKay's moderated output): an instance unlike those seen says less than the mode would have it say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior, label_posterior, spread
from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.shards import BLOCK_ROWS, Shard, thin_product, total

__all__ = [
    "STAGES",
    "BagLikelihood",
    "LabelPrior",
    "Stage",
    "fit_bag_likelihood",
    "likelihood_statistics",
    "moderate",
]

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]

_POSITIVE_SHARE = 0.1
_MIN_PRIOR = 1e-8


class Stage(NamedTuple):
    """L-BFGS iterations at a variance s^2 of the weights, with the label posterior held at the prior or not."""

    iterations: int
    variance: float
    hold_prior: bool


STAGES = (Stage(20, 30.0, True), Stage(20, 30.0, False), Stage(20, 100.0, False), Stage(20, 300.0, False))


class BagLikelihood(NamedTuple):
    """What the stage learnt.

    weights : (R, q + 1), bias : (q + 1,): instance scores are features @ weights + bias
    log_kappa : float
    variance : (R,): posterior variance of the weights in a logit
    offset : (q,): added to the log evidence of a bag
    """

    weights: Tensor
    bias: Tensor
    log_kappa: float
    variance: Tensor
    offset: Tensor

    @property
    def coef(self) -> Tensor:
        """Weights (R, q) of the classes less those of negatives."""
        return self.weights[:, :-1] - self.weights[:, -1:]

    @property
    def intercept(self) -> Tensor:
        """The logits (q,) of an instance without features, kappa included."""
        return self.bias[:-1] - self.bias[-1] + self.log_kappa

    def mode(self, features: Tensor) -> Tensor:
        """Instance logits (n, q) of features (n, R) at the mode of the weights, kappa included."""
        return thin_product(features, self.coef.to(features.dtype)).double() + self.intercept

    def logits(self, features: Tensor) -> Tensor:
        """Moderated instance logits (n, q) of features (n, R), kappa included."""
        return moderate(self.mode(features), features, self.variance)

    def log_evidence(self, shard: Shard) -> Tensor:
        """Log evidence (m, q) of the labels of a shard's bags, offsets included."""
        return bag_evidence(self.logits(shard.features), shard.offsets).log_evidence + self.offset


def moderate(logits: Tensor, features: Tensor, variance: Tensor) -> Tensor:
    """Logits (n, q) averaged over weights of a posterior variance (R,) in the features (n, R)."""
    v = torch.cat([block.square() @ variance.to(block.dtype) for block in features.split(BLOCK_ROWS)]).double()
    return logits / torch.sqrt(1 + math.pi / 8 * v)[:, None]


class LabelPrior(NamedTuple):
    """A prior on the labels of m bags, on candidate columns only: evidence of other labels is never needed.

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
        probability = prior.gather(1, columns).clamp(min=_MIN_PRIOR)
        return cls(columns, torch.where(is_candidate[:, :k].bool(), probability, 0.0))


def likelihood_statistics(
    shard: Shard, prior: LabelPrior, weights: Tensor, bias: Tensor, log_kappa: float, hold_prior: bool
) -> tuple[Tensor, Tensor]:
    """A shard's part of the negative log likelihood, and of its gradient (R, q + 1).

    With `hold_prior` the prior is taken for the labels' posterior: the objective is then the expected log evidence.
    """
    f = thin_product(shard.features, weights.to(shard.features.dtype)).double().add_(bias)  # (n, q + 1)
    columns = spread(prior.columns, shard.offsets)  # (n, k)
    logits = f.gather(1, columns) - f[:, -1:] + log_kappa
    evidence = bag_evidence(logits, shard.offsets)
    if hold_prior:
        posterior = prior.probability
        log_likelihood = (posterior * evidence.log_evidence).sum()
    else:
        log_prior = torch.log(prior.probability)
        posterior = label_posterior(evidence.log_evidence, log_prior)
        log_likelihood = torch.logsumexp(evidence.log_evidence + log_prior, dim=1).sum()
    R = instance_posterior(logits, evidence, posterior, shard.offsets)  # (n, k)
    log_p = torch.log_softmax(f, dim=1)
    log_negative = log_p[:, -1].sum()
    residual = log_p.exp_()
    residual.scatter_add_(1, columns, -R)
    residual[:, -1] -= 1 - R.sum(dim=1)
    # The long side last: BLAS is ten times slower on features' @ residual.
    gradient = (residual.T.to(shard.features.dtype) @ shard.features).T.double()
    return -log_likelihood - log_negative, gradient


def fit_bag_likelihood(
    shards: Sequence[Shard],
    eigenvalues: Tensor,
    prior: Tensor,
    kappa: float | None = None,
    stages: Sequence[Stage] = STAGES,
) -> BagLikelihood:
    """Fit to shards whose features have the diagonal Gram matrix `eigenvalues` (R,), with a label prior (m, q)."""
    q = prior.shape[1]
    log_kappa = math.log(math.sqrt(q) if kappa is None else kappa)
    bias = torch.full((q + 1,), math.log(_POSITIVE_SHARE / q), dtype=torch.float64, device=prior.device)
    bias[-1] = math.log(1 - _POSITIVE_SHARE)
    counts = [len(shard.candidates) for shard in shards]
    candidates = torch.cat([shard.candidates for shard in shards])
    log_prior = torch.where(candidates, torch.log(prior.clamp(min=_MIN_PRIOR)), -torch.inf)
    none = torch.zeros(q, dtype=torch.float64, device=prior.device)
    offset = none
    weights = torch.zeros(len(eigenvalues), q + 1, dtype=torch.float64, device=prior.device)
    for stage in stages:
        of_shards = torch.softmax(log_prior + offset, dim=1).split(counts)
        priors = [LabelPrior.of(p, shard.candidates) for p, shard in zip(of_shards, shards, strict=True)]
        pairs = list(zip(shards, priors, strict=True))
        whitening = (eigenvalues / (q + 1) + 1 / stage.variance).rsqrt()[:, None]

        def objective(weights: Tensor, stage: Stage = stage, pairs: Any = pairs) -> tuple[Tensor, Tensor]:
            value, gradient = total(_of_pair, pairs, weights, bias, log_kappa, stage.hold_prior)
            penalty = (weights * weights).sum() / (2 * stage.variance)
            return value + penalty, gradient + weights / stage.variance

        weights = _minimise(objective, weights, whitening, stage.iterations)
        model = BagLikelihood(weights, bias, log_kappa, torch.zeros_like(eigenvalues), none)
        information = _share_of_positives(model, shards) ** 2 / 2
        model = model._replace(variance=1 / (information * eigenvalues + 1 / stage.variance))
        offset = class_offsets(torch.cat([model.log_evidence(shard) for shard in shards]), log_prior)
    return model._replace(offset=offset)


def _share_of_positives(model: BagLikelihood, shards: Sequence[Shard]) -> float:
    """How many of the instances the mode takes for positive, in expectation."""
    positive = sum(float(torch.sigmoid(model.mode(shard.features).logsumexp(dim=1)).sum()) for shard in shards)
    return positive / sum(len(shard.features) for shard in shards)


def _of_pair(pair: tuple[Shard, LabelPrior], *args: Any) -> tuple[Tensor, Tensor]:
    return likelihood_statistics(*pair, *args)


def _minimise(objective: Objective, start: Tensor, whitening: Tensor, iterations: int) -> Tensor:
    """L-BFGS in the coordinates V, W = whitening * V."""

    def flat(V: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = objective(torch.from_numpy(V.reshape(start.shape)).to(start.device) * whitening)
        return float(value), (gradient * whitening).cpu().numpy().ravel()

    x, _, _ = fmin_l_bfgs_b(
        flat, (start / whitening).cpu().numpy().ravel(), m=10, factr=0, pgtol=1e-3, maxiter=iterations
    )
    return torch.from_numpy(x.reshape(start.shape)).to(start.device) * whitening
