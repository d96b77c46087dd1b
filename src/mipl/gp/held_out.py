r"""What held-out candidate sets say: how far to fit, and how much to trust each model.

False candidates are drawn at random, so the probability that a model gives to a held-out bag's candidate *set* tells
how good and how well calibrated it is; no label is needed. The bag likelihood is fitted without a quarter of the bags;
for these the bag regression has left-out evidence anyway. On them the weights of the product of experts

.. math:: \hat p_b = \mathrm{softmax}_c(w_1 z^{(1)}_{bc} + w_2 z^{(2)}_{bc})

are fitted by maximum likelihood of the candidate sets, with a log-normal prior around one half. Later stages of the bag
likelihood are better as a rule, and held-out sets too few to rank near ties; but where the labels' posterior runs away
from its prior they show it, and the path is cut before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from mipl.gp.bag_likelihood import STAGES, fit_bag_likelihood
from mipl.gp.shards import Shard

__all__ = ["HeldOut", "against_best", "judge_on_held_out"]

_TRAINING_SHARE = 0.75
_MIN_HELD_OUT = 8
_WEIGHT = 0.5
#: Precision of the log-normal prior on the weights, in held-out bags.
_PRECISION = 2.0
#: Log odds below the best class at which an expert has nothing more to say against a class.
_CERTAIN = 30.0


class HeldOut(NamedTuple):
    """weights : (2,) of bag regression and bag likelihood; n_stages : how many stages of the bag likelihood to run."""

    weights: NDArray[np.float64]
    n_stages: int


def judge_on_held_out(
    shards: Sequence[Shard], eigenvalues: Tensor, prior: Tensor, log_evidence: Tensor, kappa: float | None
) -> HeldOut:
    """Fit the bag likelihood to three quarters of the bags; judge it and the bag regression on the rest.

    log_evidence : (m, q), what the bag regression says of each bag with that bag left out. Bags must be in random
    order. With too few of them, the prior's weights and all stages are taken.
    """
    if all(bool(shard.candidates.all()) for shard in shards):
        return HeldOut(np.zeros(2), 1)  # the candidates say nothing
    kept = [max(1, round(_TRAINING_SHARE * len(shard.candidates))) for shard in shards]
    counts = [len(shard.candidates) for shard in shards]
    if sum(counts) - sum(kept) < _MIN_HELD_OUT:
        return HeldOut(np.full(2, _WEIGHT), len(STAGES))
    halves = [shard.split(k) for shard, k in zip(shards, kept, strict=True)]
    training = [first for first, _ in halves]
    held_out = [rest for _, rest in halves if len(rest.candidates)]
    priors = torch.cat([p[:k] for p, k in zip(prior.split(counts), kept, strict=True)])
    cautious = against_best(torch.cat([z[k:] for z, k in zip(log_evidence.split(counts), kept, strict=True)]))
    candidates = torch.cat([rest.candidates for rest in held_out])
    path = fit_bag_likelihood(training, eigenvalues * _TRAINING_SHARE, priors, kappa)
    fits = []
    for model in path:
        sharp = against_best(torch.cat([model.log_evidence(rest) for rest in held_out]))
        fits.append(_fit_weights(cautious, sharp, candidates))
    n_stages = _last_within_one_error(np.stack([scores for _, scores in fits]))
    return HeldOut(fits[n_stages - 1][0], n_stages)


def _last_within_one_error(scores: NDArray[np.float64]) -> int:
    """How many of the stages to keep, given the log likelihood of each held-out bag after each stage (stages, bags).

    The last stage that falls behind the best by no more than one standard error of the difference.
    """
    behind = scores[scores.mean(axis=1).argmax()] - scores
    error = behind.std(axis=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(behind.mean(axis=1) <= error)[-1]) + 1


def against_best(log_evidence: Tensor) -> Tensor:
    """Log odds (m, q) against the best class of each bag, cut off where a class is out of the question."""
    return (log_evidence - log_evidence.amax(dim=1, keepdim=True)).clamp(min=-_CERTAIN)


def _fit_weights(first: Tensor, second: Tensor, candidates: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights (2,) of two experts, and the log likelihood (m,) of each candidate set with them."""

    def log_likelihood(log_weights: NDArray[np.float64]) -> Tensor:
        z = float(np.exp(log_weights[0])) * first + float(np.exp(log_weights[1])) * second
        in_set = torch.logsumexp(torch.where(candidates, z, -torch.inf), dim=1)
        return in_set - torch.logsumexp(z, dim=1)

    def objective(log_weights: NDArray[np.float64]) -> float:
        away = log_weights - np.log(_WEIGHT)
        return -float(log_likelihood(log_weights).sum()) + 0.5 * _PRECISION * float(away @ away)

    result = minimize(objective, np.full(2, np.log(_WEIGHT)), method="Nelder-Mead")
    return np.exp(result.x), log_likelihood(result.x).cpu().numpy()
