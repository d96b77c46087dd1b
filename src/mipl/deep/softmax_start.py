"""Where FastMIPL starts: a softmax regression on bag means, told only which labels are candidates."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.deep.network import uniform_weights

__all__ = ["Start", "softmax_regression", "softmax_start"]

_STEPS = 1000
_STEP_SIZE = 0.1
_FIRST_WEIGHTS = 0.01
#: Posterior variance at the start: of attending weights, and of scoring weights as a share of their mean square.
_VARIANCE = 0.1
_OFF_DIAGONAL = 1e-4


class Start(NamedTuple):
    """First values of FastMIPL's parameters."""

    mean: Tensor  # (q, 2 L)
    factor: Tensor  # (q, 2 L, 2 L)
    log_prior_scale: Tensor  # (q, 2)


def softmax_start(features: Tensor, candidates: Tensor, generator: torch.Generator, *, same_encoder: bool) -> Start:
    r"""Parameters from bag means (m, L) and candidates (m, q).

    With u the scores of the regression and :math:`\gamma_c` its weights, the scoring weights have mean
    :math:`\mathrm{std}(u_c)\, \gamma_c / \mathrm{rms}(\gamma_c)` and a common variance, a tenth of their mean square;
    the attending weights have mean 0 and variance .1. Prior variances fit: mean square plus variance for scoring, .5
    for attending weights.

    The regression sees standardised features and the network does not; `same_encoder` divides the weights by the
    features' deviations, which makes the network's first scores those of the regression. Without it the regression
    swings, as the released program's does.
    """
    n_hidden, q = features.shape[1], candidates.shape[1]
    deviation, mean = torch.std_mean(features, dim=0)
    deviation = torch.where(deviation > 0, deviation, 1.0) if len(features) > 1 else torch.ones_like(mean)
    X = (features - mean) / deviation / sqrt(n_hidden)
    gamma = softmax_regression(X, uniform_weights(candidates), generator, swinging=not same_encoder)  # (L, q)
    spread = (X @ gamma).std(dim=0, correction=0)  # (q,)
    direction = gamma / deviation[:, None] if same_encoder else gamma
    scoring = (spread * direction / direction.square().mean(dim=0).sqrt()).T  # (q, L)

    variance = _VARIANCE * float(scoring.square().mean())
    scale = torch.full((2 * n_hidden,), sqrt(_VARIANCE))
    scale[n_hidden:] = sqrt(variance)
    factor = torch.diag(scale) + _OFF_DIAGONAL * torch.randn(q, 2 * n_hidden, 2 * n_hidden, generator=generator)
    prior = torch.full((q, 2), log(0.5) / 2)
    prior[:, 1] = (scoring.square().mean(dim=1) + variance).log() / 2
    return Start(torch.cat([torch.zeros_like(scoring), scoring], dim=1), factor, prior)


def softmax_regression(X: Tensor, weights: Tensor, generator: torch.Generator, *, swinging: bool = False) -> Tensor:
    """Coefficients (L, q) by gradient descent on the summed cross-entropy, from features (m, L) and weights (m, q).

    The step is short enough for the curvature of the loss, of which half the largest eigenvalue of X'X is a bound.
    With `swinging` it is as long as in the released program, .1 for intercepts too: from some hundred bags on they
    swing from side to side without end, and coefficients become several times as long.
    """
    step, intercept_step = _STEP_SIZE, _STEP_SIZE
    if not swinging:
        step, intercept_step = min(step, 2 / float(torch.linalg.matrix_norm(X, 2)) ** 2), 1 / len(X)
    gamma = _FIRST_WEIGHTS * torch.randn(X.shape[1], weights.shape[1], generator=generator)
    intercept = torch.zeros(weights.shape[1])
    for _ in range(_STEPS):
        error = (X @ gamma + intercept).softmax(dim=1) - weights
        gamma -= step * (X.T @ error)
        intercept -= intercept_step * error.sum(dim=0)
    return gamma
