r"""Votes as prior odds: what weights on the candidates say of the label, tempered by how far they can be believed.

With votes :math:`v_{bc}` the prior of a bag's label is :math:`\pi_{bc} \propto v_{bc}^\tau` on its candidates. The
strength :math:`\tau` is found without labels: it is the one under which the labels that the votes favour are those that
the instances of the bag favour, as told by bag regression from the candidate sets alone,

.. math:: \hat\tau = \operatorname{argmax}_\tau \sum_b \log \sum_c \pi_{bc}(\tau)\, \hat p_{bc}.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from mipl.baggp.candidate_noise import noisy_log_prior
from mipl.baggp.constants import (
    PRIOR_OUTLIER_RATE,
    PRIOR_SCALE,
    PRIOR_VOTE_STRENGTH,
    SCALE_PRECISION,
    VOTE_STRENGTH_PRECISION,
)
from mipl.baggp.weights import weigh

__all__ = ["fit_vote_strength", "vote_log_prior"]


def vote_log_prior(weights: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """What votes (m, q) say of labels, (m, q): zero for the label with most votes, -inf for one without.

    >>> vote_log_prior(np.array([[4.0, 1.0, 0.0]]), 0.5).round(3).tolist()
    [[0.0, -0.693, -inf]]
    """
    with np.errstate(divide="ignore"):
        share = np.log(weights / weights.max(axis=1, keepdims=True))
    return np.where(weights > 0, strength * np.where(weights > 0, share, 0.0), -np.inf)


def fit_vote_strength(
    log_evidence: Tensor, weights: NDArray[np.float64], noise: float = 0.0, sample_weight: Tensor | None = None
) -> float:
    """The strength under which votes (m, q) agree best with left-out log evidence (m, q), at that candidate noise.

    Bags count by their `sample_weight` (m,), None for once.
    """
    odds = log_evidence - log_evidence.amax(dim=1, keepdim=True)
    q = odds.shape[1]

    def objective(x: NDArray[np.float64]) -> float:
        p = torch.softmax(math.exp(x[1]) * odds, dim=1)
        log_p = torch.log((1 - PRIOR_OUTLIER_RATE) * p + PRIOR_OUTLIER_RATE / q)
        prior = torch.log_softmax(
            torch.as_tensor(noisy_log_prior(vote_log_prior(weights, math.exp(x[0])), noise)), dim=1
        )
        penalty = VOTE_STRENGTH_PRECISION * (x[0] - mode[0]) ** 2 + SCALE_PRECISION * (x[1] - mode[1]) ** 2
        loss: float = 0.5 * penalty - float(weigh(torch.logsumexp(prior + log_p, dim=1), sample_weight).sum())
        return loss

    mode = np.log([PRIOR_VOTE_STRENGTH, PRIOR_SCALE])
    return math.exp(minimize(objective, mode, method="Nelder-Mead").x[0])
