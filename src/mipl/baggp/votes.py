r"""What is known of a bag's label beforehand: a candidate set, the votes of people, or odds on the candidates.

*Votes* are counts of people, evidence that grows with every one of them. People who look at the same bag err alike, so
the tenth vote says less than the first: the chances with which they name the labels of a bag are its own, drawn from a
Dirichlet distribution around its label c. Then the probability of n votes, of which :math:`n_k` name label k, is

.. math:: P(n \mid c) \propto
    \frac{\Gamma(A)}{\Gamma(A + \sum_k n_k)} \prod_k \frac{\Gamma(n_k + \alpha_k)}{\Gamma(\alpha_k)}, \qquad
    \alpha_k = A \Big( \frac{1 - s}{q} + s \, 1[k = c] \Big).

A vote is right with probability :math:`a = s + (1 - s) / q`, its *reliability*, and the errors of two votes on a bag
have the *correlation* :math:`1 / (A + 1)`. As a prior on the label,

.. math:: \log \pi_{bc} = \log \Gamma\big(n_{bc} + A \tfrac{1 - s}{q} + A s\big)
    - \log \Gamma\big(n_{bc} + A \tfrac{1 - s}{q}\big) + \text{const}.

Without correlation it is Dawid and Skene's model with one coin, linear in the counts,
:math:`n_{bc} \log \frac{a (q - 1)}{1 - a}`; with it, the prior grows like the logarithm of the counts in the end. A
label that nobody named is improbable but not impossible, and the fewer people there are, the less so. However many
agree, in a small share :math:`\epsilon` of the bags (`mipl.baggp.constants`) everybody sees another thing than what is
there, and the prior is :math:`(1 - \epsilon)\, \pi_{bc} + \epsilon / q`.

Reliability and correlation are those under which the votes and what the instances say, each bag read without its own
votes, are most probable together. No label is needed: where the instances say nothing, how far people agree tells
enough. They are found twice: from the regression, so that everything can be learned from votes, and in the end from
models that were fitted without the bag's fold, because in a regression a bag's candidates come back through other bags
and look like what the instances say. A crowd that is wrong in one bag out of five, and knows no doubt, looks like
instances that are wrong there; the crowd is believed.

*Odds* v are a prior :math:`\pi_{bc} \propto v_{bc}^\tau` on the candidates. Their strength :math:`\tau` is the one
under which the labels that they favour are those that the instances of the bag favour,

.. math:: \hat\tau = \operatorname{argmax}_\tau \sum_b \log \sum_c \pi_{bc}(\tau)\, \hat p_{bc}.

Equal odds are a plain candidate set. For labels off the set of a bag without votes see `mipl.baggp.candidate_noise`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, softmax
from torch import Tensor

from mipl.baggp.candidate_noise import noisy_log_prior
from mipl.baggp.constants import (
    MOST_VOTES,
    PRIOR_CONCENTRATION,
    PRIOR_OUTLIER_RATE,
    PRIOR_SCALE,
    PRIOR_SIGNAL,
    PRIOR_VOTE_STRENGTH,
    SCALE_PRECISION,
    STACKING_BAGS,
    STACKING_GRADIENT,
    STACKING_ITERATIONS,
    VOTE_OUTLIER_RATE,
    VOTE_STRENGTH_PRECISION,
    VOTES_PRECISION,
)
from mipl.baggp.model import against_best
from mipl.baggp.weights import weigh
from mipl.lbfgs import minimize_lbfgs

__all__ = ["Belief", "are_votes", "fit_belief", "label_log_prior"]

_LEAST_SIGNAL = 1e-9
#: Logarithm of the concentration above which people are as good as independent; far above, lgamma has no digits left.
_LARGEST_LOG = math.log(1e6)


class Belief(NamedTuple):
    """How far votes and odds are believed; None where there were none, and what is expected beforehand is taken.

    Attributes
    ----------
    reliability : float, the probability that a vote is right
    correlation : float, of the errors of two votes on a bag
    strength : float, the power of odds
    """

    reliability: float | None = None
    correlation: float | None = None
    strength: float | None = None


def are_votes(weights: NDArray[np.float64], expected: bool = False) -> NDArray[np.bool_]:
    """The bags (m,) whose weights (m, q) are counts of people: whole numbers, if any of these is above one.

    Sets and shares are at most one. Where votes are `expected`, as a model has learned from some, single ones are
    votes too.

    >>> are_votes(np.array([[3.0, 1.0], [0.0, 1.0], [0.5, 0.5]])).tolist()
    [True, True, False]
    >>> are_votes(np.array([[1.0, 1.0], [0.0, 1.0]])).tolist()
    [False, False]
    """
    whole: NDArray[np.bool_] = ((weights % 1 == 0) & (weights <= MOST_VOTES)).all(axis=1)
    return whole & (expected or bool((weights[whole] > 1).any()))


def label_log_prior(
    candidates: NDArray[np.bool_], weights: NDArray[np.float64] | None, belief: Belief, noise: float
) -> NDArray[np.float64]:
    """What is known of labels (m, q) by candidates (m, q), weights (m, q) and the candidate noise; -inf: impossible.

    >>> weights = np.array([[4.0, 1.0, 0.0], [0.8, 0.2, 0.0]])
    >>> label_log_prior(weights > 0, weights, Belief(0.8, 0.05, 1.0), 0.0).round(2)
    array([[ 0.  , -4.25, -5.35],
           [ 0.  , -1.39,  -inf]])
    """
    if weights is None:
        return noisy_log_prior(np.where(candidates, 0.0, -np.inf), noise)
    strength = PRIOR_VOTE_STRENGTH if belief.strength is None else belief.strength
    result = noisy_log_prior(_odds_log_prior(weights, strength), noise)
    voted = are_votes(weights, expected=belief.reliability is not None)
    result[voted] = _votes_log_prior(weights[voted], belief)
    return result


def fit_belief(
    log_evidence: Tensor, weights: NDArray[np.float64], noise: float = 0.0, sample_weight: Tensor | None = None
) -> Belief:
    """How far weights (m, q) are to be believed, given log evidence (m, q) of models that have not seen the bag's own.

    Odds are read at that candidate noise. Bags count by their `sample_weight` (m,), None for once.
    """
    voted = are_votes(weights)
    odds = ~voted & (weights.max(axis=1) > np.where(weights > 0, weights, np.inf).min(axis=1))  # equal ones say nothing

    evidence = against_best(log_evidence.cpu())

    def part(rows: NDArray[np.bool_]) -> tuple[Tensor, NDArray[np.float64], Tensor | None]:
        chosen = torch.as_tensor(rows)
        weight = None if sample_weight is None else sample_weight.cpu()[chosen]
        return evidence[chosen], weights[rows], weight

    belief = _fit_votes(*part(voted)) if voted.any() else Belief()
    return belief._replace(strength=_fit_strength(*part(odds), noise)) if odds.any() else belief


# -------------------------------------------------------------------- votes


def _votes_log_prior(votes: NDArray[np.float64], belief: Belief) -> NDArray[np.float64]:
    """What votes (m, q) say of labels, (m, q): zero for the label with most votes."""
    q = votes.shape[1]
    if belief.reliability is None or belief.correlation is None:
        signal, concentration = PRIOR_SIGNAL, PRIOR_CONCENTRATION
    else:
        signal = max((belief.reliability - 1 / q) / (1 - 1 / q), _LEAST_SIGNAL)  # not below zero by rounding
        concentration = 1 / belief.correlation - 1
    # The difference of two logarithms of Gamma, but for a constant; betaln keeps its digits where these are large.
    log_prior = -betaln(votes + concentration * (1 - signal) / q, concentration * signal)
    prior = (1 - VOTE_OUTLIER_RATE) * softmax(log_prior, axis=1) + VOTE_OUTLIER_RATE / q
    result: NDArray[np.float64] = np.log(prior / prior.max(axis=1, keepdims=True))
    return result


def _fit_votes(log_evidence: Tensor, votes: NDArray[np.float64], weight: Tensor | None) -> Belief:
    """How far votes (m, q) are to be believed, given log evidence (m, q) and the weight (m,) of the bags."""
    q = votes.shape[1]
    counts, where = torch.unique(torch.as_tensor(votes), return_inverse=True)
    bags = torch.ones(len(votes), dtype=torch.float64) if weight is None else weight
    total = float(bags.sum())
    given = (log_evidence, where, torch.as_tensor(votes.sum(axis=1)), bags)
    pieces = list(zip(*(each.split(STACKING_BAGS) for each in given), strict=True))
    log_modes = np.log([PRIOR_CONCENTRATION, PRIOR_SCALE])
    mode, precision = np.array([logit(PRIOR_SIGNAL), *log_modes]), np.array([*VOTES_PRECISION, SCALE_PRECISION])

    def objective(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The negative log posterior per bag, and its gradient."""
        at = torch.tensor(x, requires_grad=True)
        value = 0.5 * float(precision @ (x - mode) ** 2)
        for evidence, row, n, times in pieces:
            concentration, scale = at[1:].clamp(max=_LARGEST_LOG).exp()
            signal, off = concentration * torch.sigmoid(at[0]), concentration * torch.sigmoid(-at[0]) / q
            any_label = torch.lgamma(counts + off) - torch.lgamma(off)
            true_label = torch.lgamma(counts + off + signal) - torch.lgamma(counts + off)
            true_label = true_label + torch.lgamma(off) - torch.lgamma(off + signal)
            seen = torch.logsumexp(_log_probabilities(evidence, scale) + true_label[row], dim=1)
            log_likelihood = torch.lgamma(concentration) - torch.lgamma(concentration + n) + any_label[row].sum(dim=1)
            loss = -((log_likelihood + seen) @ times)
            loss.backward()
            value += loss.item()
        assert at.grad is not None
        return value / total, (at.grad.numpy() + precision * (x - mode)) / total

    found = minimize_lbfgs(objective, mode, max_iter=STACKING_ITERATIONS, tol=STACKING_GRADIENT).point
    signal, concentration = float(expit(found[0])), math.exp(min(found[1], _LARGEST_LOG))
    return Belief(signal + (1 - signal) / q, 1 / (1 + concentration))


# -------------------------------------------------------------------- odds


def _odds_log_prior(odds: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """What odds (m, q) say of labels, (m, q): zero for the label with the largest, -inf for one without."""
    with np.errstate(divide="ignore"):
        share = np.log(odds / odds.max(axis=1, keepdims=True))
    return np.where(odds > 0, strength * np.where(odds > 0, share, 0.0), -np.inf)


def _fit_strength(log_evidence: Tensor, odds: NDArray[np.float64], weight: Tensor | None, noise: float) -> float:
    """The strength under which odds (m, q) agree best with log evidence (m, q); bags have the weight (m,)."""

    def objective(x: NDArray[np.float64]) -> float:
        log_p = _log_probabilities(log_evidence, torch.tensor(math.exp(x[1])))
        prior = torch.log_softmax(torch.as_tensor(noisy_log_prior(_odds_log_prior(odds, math.exp(x[0])), noise)), dim=1)
        penalty = VOTE_STRENGTH_PRECISION * (x[0] - mode[0]) ** 2 + SCALE_PRECISION * (x[1] - mode[1]) ** 2
        loss: float = 0.5 * penalty - float(weigh(torch.logsumexp(prior + log_p, dim=1), weight).sum())
        return loss

    mode = np.log([PRIOR_VOTE_STRENGTH, PRIOR_SCALE])
    return math.exp(minimize(objective, mode, method="Nelder-Mead").x[0])


def _log_probabilities(log_evidence: Tensor, scale: Tensor) -> Tensor:
    """Log probabilities (m, q) of labels by log evidence (m, q), tempered, and but for a share of outlying bags."""
    p = torch.softmax(scale * log_evidence, dim=1)
    return torch.log((1 - PRIOR_OUTLIER_RATE) * p + PRIOR_OUTLIER_RATE / log_evidence.shape[1])
