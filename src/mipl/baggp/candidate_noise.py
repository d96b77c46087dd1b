r"""Candidate noise: the truth may be missing from a candidate set.

With probability :math:`\eta` a bag's set lacks its label, which is then any of the other labels. With :math:`\pi_{bc}`
the prior on the s candidates of a set S, equal or by votes, summing to one, the prior of the label becomes

.. math:: (1 - \eta)\, \pi_{bc} \;\; (c \in S_b), \qquad \eta / (q - s_b) \;\; (c \notin S_b);

for a plain set, a label off the set has the prior odds :math:`\frac{\eta}{1 - \eta} \frac{s}{q - s}` against one on it.
A set of one label is certain, whatever :math:`\eta`, and a set of all classes lacks none.

The rate is found without labels from what bag regression says of bags with their own vote left out, at the rate that is
expected beforehand. With :math:`\hat p_b` its label probabilities, and false candidates drawn at random, the sets have
the log likelihood

.. math:: \sum_b \log \Big( \frac{1 - \eta}{s_b} \sum_{c \in S_b} \hat p_{bc}
    + \frac{\eta}{q - s_b} \sum_{c \notin S_b} \hat p_{bc} \Big),

a concave function of :math:`\eta`. Where :math:`\hat p` is calibrated and no set lacks its label, its slope at zero is
zero on average; where the instances say nothing, it is flat. A beta prior with its mode at zero settles such cases. A
model that is wrong on some bags looks like wrong sets, so the unknown scale of the log evidence is summed out, and the
rate of outlying bags is held at its prior mode: what is beyond it counts as noise. The rate stays below the one from
which on a set tells less than nothing, :math:`1 - s / q`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logit, logsumexp
from torch import Tensor

from mipl.baggp.constants import (
    CANDIDATE_NOISE_PRIOR,
    NOISE_BAGS,
    NOISE_RATES,
    NOISE_SCALES,
    PRIOR_OUTLIER_RATE,
    PRIOR_SCALE,
    SCALE_PRECISION,
)

__all__ = ["expected_noise", "fit_candidate_noise", "noisy_log_prior", "trusted_sets"]


def expected_noise() -> float:
    """The rate that is expected before anything is seen."""
    alpha, beta = CANDIDATE_NOISE_PRIOR
    return alpha / (alpha + beta)


def noisy_log_prior(log_prior: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """A log prior (m, q) that is -inf off the candidates, with the share `rate` moved to the labels off the set.

    >>> noisy_log_prior(np.array([[0.0, 0.0, -np.inf, -np.inf], [0.0, -np.inf, -np.inf, -np.inf]]), 0.5).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, -inf, -inf, -inf]]
    """
    if rate == 0:
        return log_prior
    candidates = log_prior > -np.inf
    doubted = _doubted(candidates)
    size = candidates[doubted].sum(axis=1)
    off = logit(rate) + logsumexp(log_prior[doubted], axis=1) - np.log(log_prior.shape[1] - size)
    result = log_prior.copy()
    result[doubted] = np.where(candidates[doubted], log_prior[doubted], off[:, None])
    return result


def fit_candidate_noise(log_evidence: Tensor, candidates: NDArray[np.bool_], weight: Tensor | None = None) -> float:
    """The most probable rate given candidate sets (m, q) and log evidence (m, q) of models that have not seen them.

    Bags count by their `weight` (m,), None for once.
    """
    doubted = _doubted(candidates)
    if not doubted.any():
        return 0.0
    chosen = torch.as_tensor(doubted)
    inside, evidence = torch.as_tensor(candidates[doubted]), log_evidence.cpu()[chosen]
    counts = torch.ones(len(inside), dtype=torch.float64) if weight is None else weight.cpu()[chosen]
    size, q = inside.sum(dim=1), inside.shape[1]
    most = 1 - float(size.double().mean()) / q  # from here on a set tells less than nothing
    rates = torch.linspace(0, most, NOISE_RATES, dtype=torch.float64)[:-1, None]
    alpha, beta = CANDIDATE_NOISE_PRIOR
    log_prior = torch.xlogy(torch.tensor(alpha - 1), rates) + (beta - 1) * torch.log1p(-rates)
    joint = []
    for scale in np.geomspace(*NOISE_SCALES):
        p = torch.softmax(scale * evidence, dim=1)
        p = (1 - PRIOR_OUTLIER_RATE) * p + PRIOR_OUTLIER_RATE / q
        mass = torch.where(inside, p, 0.0).sum(dim=1)
        on, off = mass / size, (1 - mass) / (q - size)  # of a label of the set, and of another one, on average
        pieces = zip(on.split(NOISE_BAGS), off.split(NOISE_BAGS), counts.split(NOISE_BAGS), strict=True)
        log_likelihood = torch.stack([torch.log((1 - rates) * a + rates * b) @ w for a, b, w in pieces]).sum(dim=0)
        penalty = 0.5 * SCALE_PRECISION * math.log(scale / PRIOR_SCALE) ** 2
        joint.append(log_likelihood + log_prior[:, 0] - penalty)
    return float(rates[torch.logsumexp(torch.stack(joint), dim=0).argmax()])


def trusted_sets(log_prior: Tensor, candidates: Tensor, posterior: Tensor) -> Tensor:
    """Which labels (m, F, q) are possible: those of the set alone in bags whose set has probably the truth.

    Parameters
    ----------
    log_prior : (m, q)
        With noise: not -inf off the sets.
    candidates : (m, q) bool
        The sets.
    posterior : (m, F, q)
        What F models say of the labels under that prior.
    """
    right = torch.einsum("mq,mfq->mf", candidates.to(posterior.dtype), posterior) > 0.5
    return (log_prior > -torch.inf)[:, None] & (candidates[:, None] | ~right[:, :, None])


def _doubted(candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The sets (m,) that may lack their label: neither a single, known label nor all classes."""
    size = candidates.sum(axis=1)
    doubted: NDArray[np.bool_] = (size > 1) & (size < candidates.shape[1])
    return doubted
