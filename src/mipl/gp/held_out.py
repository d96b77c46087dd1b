r"""What held-out candidate sets say: how much to trust each model.

False candidates are drawn at random, so the probability that a model gives to a held-out bag's candidate *set* tells
how good and how well calibrated it is; no label is needed. The bag likelihood is fitted without an eighth of the bags;
for these the bag regression has left-out evidence anyway. On them the weights of the product of experts

.. math:: \hat p_b = \mathrm{softmax}_c(w_1 z^{(1)}_{bc} + w_2 z^{(2)}_{bc})

are fitted by maximum likelihood of the candidate sets, with a log-normal prior around one half. A model of fewer bags
is less sure than the one that is used in the end: the more bags are held out, the more cautious the probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from mipl.bag_posterior import set_log_likelihood
from mipl.gp.bag_likelihood import fit_bag_likelihood
from mipl.gp.shards import Shard

__all__ = ["against_best", "weights_by_held_out"]

_TRAINING_SHARE = 0.875
_MIN_HELD_OUT = 8
_WEIGHT = 0.5
#: Precision of the log-normal prior on the weights, in held-out bags.
_PRECISION = 2.0
#: Log odds below the best class at which an expert has nothing more to say against a class.
_CERTAIN = 30.0


def weights_by_held_out(
    shards: Sequence[Shard], eigenvalues: Tensor, prior: Tensor, log_evidence: Tensor, kappa: float | None
) -> NDArray[np.float64]:
    """Fit the bag likelihood to most of the bags; weigh it (2,) against the bag regression on the rest.

    log_evidence : (m, q), what the bag regression says of each bag with that bag left out. Bags must be in random
    order. With too few of them, the prior's weights are taken.
    """
    if all(bool(shard.candidates.all()) for shard in shards):
        return np.zeros(2)  # the candidates say nothing
    kept = [max(1, round(_TRAINING_SHARE * len(shard.candidates))) for shard in shards]
    counts = [len(shard.candidates) for shard in shards]
    if sum(counts) - sum(kept) < _MIN_HELD_OUT:
        return np.full(2, _WEIGHT)
    parts = [shard.split(k) for shard, k in zip(shards, kept, strict=True)]
    training = [first for first, _ in parts]
    held_out = [rest for _, rest in parts if len(rest.candidates)]
    priors = torch.cat([p[:k] for p, k in zip(prior.split(counts), kept, strict=True)])
    model = fit_bag_likelihood(training, eigenvalues * _TRAINING_SHARE, priors, kappa)
    cautious = torch.cat([z[k:] for z, k in zip(log_evidence.split(counts), kept, strict=True)])
    sharp = torch.cat([model.log_evidence(rest) for rest in held_out])
    candidates = torch.cat([rest.candidates for rest in held_out])
    return _fit_weights(against_best(cautious), against_best(sharp), candidates)


def against_best(log_evidence: Tensor) -> Tensor:
    """Log odds (m, q) against the best class of each bag, cut off where a class is out of the question."""
    return (log_evidence - log_evidence.amax(dim=1, keepdim=True)).clamp(min=-_CERTAIN)


def _fit_weights(first: Tensor, second: Tensor, candidates: Tensor) -> NDArray[np.float64]:
    def objective(log_weights: NDArray[np.float64]) -> float:
        z = float(np.exp(log_weights[0])) * first + float(np.exp(log_weights[1])) * second
        away = log_weights - np.log(_WEIGHT)
        return -float(set_log_likelihood(z, candidates).sum()) + 0.5 * _PRECISION * float(away @ away)

    return np.exp(minimize(objective, np.full(2, np.log(_WEIGHT)), method="Nelder-Mead").x)
