r"""Stacking: how far to trust the two experts, from the candidate sets of bags that they have not seen.

False candidates do not depend on the instances, so the probability that a model gives to a held-out bag's candidate
*set* tells how good and how well calibrated it is; no label is needed. With the evidence of `mipl.baggp.cross_fit`, the
weights :math:`w_1 = 2 s (1 - \mu)`, :math:`w_2 = 2 s \mu` and the outlier rate of `mipl.baggp.model` are the most
probable ones given all candidate sets: a common scale s, nearly free, a mixing :math:`\mu` held near one half, and a
rate :math:`\epsilon`.

The largest likelihood always finds a positive scale, also where the instances say nothing. So the fitted stacking is
averaged with the hypothesis that they say nothing, under which all classes are equally probable: with log likelihoods
L and :math:`L_0` of m candidate sets, the latter has the posterior odds :math:`e^{L_0 - L} \sqrt m / \text{prior odds}`
(the square root is the usual price of one fitted parameter). As it predicts what an outlier is predicted, its
probability is added to the outlier rate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit
from torch import Tensor

from mipl.bag_posterior import set_log_likelihood
from mipl.baggp.blocks import add_up
from mipl.baggp.constants import (
    INFORMATIVE_ODDS,
    MIXING_PRECISION,
    OUTLIER_PRECISION,
    PRIOR_OUTLIER_RATE,
    PRIOR_SCALE,
    SCALE_PRECISION,
    STACKING_BAGS,
    STACKING_GRADIENT,
    STACKING_ITERATIONS,
)
from mipl.baggp.model import Stacking, against_best
from mipl.baggp.weights import mean_and_error, weigh
from mipl.lbfgs import minimize_lbfgs

__all__ = ["LabelFreeScore", "blend", "default_stacking", "fit_stacking", "label_free", "score_ratio"]


class LabelFreeScore(NamedTuple):
    """The mean log probability of candidate sets of held-out bags above chance, in nats per bag."""

    mean: float
    standard_error: float


def default_stacking() -> Stacking:
    """The modes of the priors, where there are no held-out bags."""
    return Stacking(np.full(2, PRIOR_SCALE), PRIOR_OUTLIER_RATE)


def fit_stacking(first: Tensor, second: Tensor, log_prior: Tensor, weight: Tensor | None = None) -> Stacking:
    """Fit weights and outlier rate to what is known of labels (m, q), given both experts' held-out evidence (m, q).

    Bags count by their `weight` (m,), None for once.
    """
    if bool((log_prior == 0).all()):
        return Stacking(np.zeros(2), 0.0)  # the sets say nothing, and nothing is claimed
    mode = np.array([math.log(PRIOR_SCALE), 0.0, logit(PRIOR_OUTLIER_RATE)])
    precision = np.array([SCALE_PRECISION, MIXING_PRECISION, OUTLIER_PRECISION])
    counts = torch.ones(len(log_prior), dtype=torch.float64, device=log_prior.device) if weight is None else weight
    total = float(counts.sum())
    given = (against_best(first), against_best(second), torch.exp(log_prior), counts)
    pieces = list(zip(*(each.split(STACKING_BAGS) for each in given), strict=True))

    def stacking(x: NDArray[np.float64]) -> Stacking:
        share = float(expit(x[1]))
        return Stacking(2 * math.exp(x[0]) * np.array([1 - share, share]), float(expit(x[2])))

    def objective(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The negative log posterior per bag, and its gradient."""
        now, away = stacking(x), x - mode
        value, *slopes = (float(each) for each in add_up(_log_likelihood(now, *piece) for piece in pieces))
        inner = _inner_gradient(now, *slopes)
        return (0.5 * float(precision @ away**2) - value) / total, (precision * away - inner) / total

    found = minimize_lbfgs(objective, mode, max_iter=STACKING_ITERATIONS, tol=STACKING_GRADIENT)
    fitted = stacking(found.point)
    answers = torch.log(fitted.probabilities(first, second))
    gain = set_log_likelihood(answers, log_prior) - _chance(log_prior)
    nothing = float(expit(0.5 * math.log(total) - float(weigh(gain, weight).sum()) - math.log(INFORMATIVE_ODDS)))
    return fitted._replace(outlier_rate=1 - (1 - fitted.outlier_rate) * (1 - nothing))


def _log_likelihood(now: Stacking, first: Tensor, second: Tensor, known: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
    """The log likelihood of candidate sets, and its slope in both weights and in the outlier rate.

    `first` and `second` are log odds (m, q) against the best class, `known` (m, q) is one on the candidates, and
    `counts` (m,) says how often each bag counts.
    """
    (w1, w2), rate = now.weights.tolist(), now.outlier_rate
    product = torch.softmax(w1 * first + w2 * second, dim=1)
    inside, by_chance = (product * known).sum(dim=1), known.mean(dim=1)
    likelihood = (1 - rate) * inside + rate * by_chance
    change = product * (known - inside[:, None])  # of the sum inside with the log odds
    by_weight = ((1 - rate) * (change * odds).sum(dim=1) / likelihood for odds in (first, second))
    each = (torch.log(likelihood), *by_weight, (by_chance - inside) / likelihood)
    return tuple(values @ counts for values in each)


def _inner_gradient(now: Stacking, first: float, second: float, rate: float) -> NDArray[np.float64]:
    """Slopes in log scale, logit of the mixing and logit of the outlier rate, from those in weights and rate."""
    (w1, w2), epsilon = now.weights.tolist(), now.outlier_rate
    return np.array(
        [w1 * first + w2 * second, now.second_share * w1 * (second - first), epsilon * (1 - epsilon) * rate]
    )


def score_ratio(unseen: Tensor, seen: Tensor, log_prior: Tensor, weight: Tensor | None = None) -> float:
    """Label-free score of models that have not seen a bag over that of models that have, from 0 to 1."""
    gain, gain_seen = (max(label_free(answer, log_prior, weight).mean, 0.0) for answer in (unseen, seen))
    return min(gain / gain_seen, 1.0) if gain_seen > 0 else 0.0


def blend(unseen: Tensor, seen: Tensor, log_prior: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Posterior (m, q) of bags by a geometric mean of the answers of models that have not and that have seen them.

    A model that has seen the bag is more often right, but also echoes its candidate set. How much is echo shows in the
    label-free scores S of both: since a score grows with the square of the log odds, these are to be believed by
    :math:`\sqrt{S_\text{unseen} / S_\text{seen}}`. The model that has seen the bag counts by half of that, and the one
    that has not by the rest. Bags count by their `weight` (m,), None for once.
    """
    share = 0.5 * math.sqrt(score_ratio(unseen, seen, log_prior, weight))
    return torch.softmax((1 - share) * torch.log(unseen) + share * torch.log(seen) + log_prior, dim=1)


def label_free(probabilities: Tensor, log_prior: Tensor, weight: Tensor | None = None) -> LabelFreeScore:
    """How much more probable held-out candidate sets are than by chance, under label probabilities (m, q).

    Bags count by their `weight` (m,), None for once.
    """
    gain = set_log_likelihood(torch.log(probabilities), log_prior) - _chance(log_prior)
    return LabelFreeScore(*mean_and_error(gain, weight))


def _chance(log_prior: Tensor) -> Tensor:
    """Log probability (m,) of each candidate set where all classes are equally probable."""
    return torch.logsumexp(log_prior, dim=1) - math.log(log_prior.shape[1])
