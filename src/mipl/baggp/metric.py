r"""A learned metric: a linear map at the end of the front end, after which near instances mean alike.

The kernel counts all directions of the front end's features alike. Which of them matter shows in the gradients of what
is learnt. Small bag likelihoods A, B are fitted without each of two halves of the bags; their instance logits are
:math:`f_c(x) = \sum_m k(x, z_m) A_{mc} + \beta_c` with the Matérn-5/2 kernel, so that, with :math:`a = \sqrt 5 / \ell`,

.. math:: \nabla f_c(x) = \sum_m h(|x - z_m|)\, A_{mc}\, (z_m - x), \qquad
    h(r) = \tfrac{a^2}{3} (1 + a r)\, e^{-a r}.

With :math:`p = \mathrm{softmax}((f^A + f^B) / 2, 0)`, zero being the logit of "negative", how much the probabilities
change along each direction is, as far as both fits say so, the *cross* average gradient outer product

.. math:: M = \mathrm{sym}\; \mathrm{mean}_j \Big[\sum_c p_c \nabla f^A_c \nabla f_c^{B\top}
    - \Big(\sum_c p_c \nabla f^A_c\Big) \Big(\sum_c p_c \nabla f^B_c\Big)^{\!\top} \Big]

without its negative eigenvalues. What one fit has memorised the other one does not confirm: such noise has a mean of
zero in M, while in the product of a fit with itself it adds up. With C the covariance of the features, x becomes S x,

.. math:: S = \sqrt{\mathrm{tr}\, C}\,
    \Big(0.9\, \frac{M}{\mathrm{tr}(M C)} + 0.1\, \frac{I}{\mathrm{tr}\, C}\Big)^{1/2},

of the same total variance. It is kept only where it makes candidate sets of held-out bags clearly more probable. To
see that, each fit is made anew in the metric of its own product, which has seen no other bags than the fit, and both
read the bags that were held out. Where M has much that is negative, the halves do not agree, and nothing is tried.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.bag_posterior import label_posterior, set_log_likelihood, spread
from mipl.baggp.blocks import Blocks, Place, divide
from mipl.baggp.candidate_noise import expected_noise, trusted_sets
from mipl.baggp.constants import (
    METRIC_BAGS,
    METRIC_DIMENSIONS,
    METRIC_DISAGREEMENT,
    METRIC_GAIN,
    METRIC_LANDMARKS,
    METRIC_RANK,
    METRIC_ROWS,
    METRIC_SHARE,
    METRIC_STAGES,
    PRIOR_SCALE,
    SIGNAL_VARIANCES,
)
from mipl.baggp.cross_fit import fits_of
from mipl.baggp.likelihood import BagLikelihoods, fit_bag_likelihoods
from mipl.baggp.low_rank import LowRank, low_rank, rank_of
from mipl.baggp.regression import fit_bag_regressions
from mipl.baggp.sources import ready
from mipl.baggp.stacking import fit_stacking
from mipl.baggp.votes import Belief, label_log_prior
from mipl.baggp.weights import mean_and_error
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map
from mipl.supervision import Supervision

__all__ = ["gradients", "learn_metric", "metric_of"]


def learn_metric(
    X: Tensor,
    offsets: NDArray[np.int64],
    supervision: Supervision,
    halves: NDArray[np.int64],
    place: Place,
    seed: int,
    lengthscale: float = 1.0,
    kappa: float | None = None,
    background: Tensor | None = None,
    candidate_noise: float | str = 0.0,
) -> Tensor | None:
    """The map S (d, d), or None where there is none to be had or it does not help.

    Parameters
    ----------
    X : (n, d)
        The front end's features.
    offsets : (m + 1,)
        The bags, as segments of these.
    supervision : Supervision
        What is known of the labels of the m bags.
    halves : (m,)
        Zero or one; all zero where the bags cannot be divided.
    place : Place
        Where fits are computed.
    seed : int
        Of landmarks, and of the instances that M is a mean over.
    lengthscale, kappa, background, candidate_noise :
        As in the fit that is to follow.
    """
    if not 2 <= X.shape[1] <= METRIC_DIMENSIONS or len(halves) < METRIC_BAGS or not halves.any():
        return None
    weight = of_rows = None
    if supervision.sample_weight is not None:
        weight = torch.tensor(supervision.sample_weight, device=X.device)
        of_rows = spread(weight, torch.tensor(offsets, device=X.device)).to(X.dtype)
    generator, parts = torch.Generator().manual_seed(seed), divide(len(X), halves)
    Z, counts = kmeans_landmarks(X, METRIC_LANDMARKS, generator, 2, of_rows, place.each)
    chosen = torch.randperm(len(X), generator=generator)[:METRIC_ROWS].to(X.device)

    def under(S: Tensor | None) -> tuple[LowRank, float]:
        """Features in a metric, and the length scale."""
        mapped, landmarks = (X, Z) if S is None else (X @ S.to(X.dtype), Z @ S.to(X.dtype))
        scale = lengthscale * median_distance(mapped, torch.Generator().manual_seed(seed), weights=of_rows)
        kernel_map = principal_map(landmarks, counts, scale, rank_of(len(Z), METRIC_LANDMARKS, METRIC_RANK))
        return low_rank(Blocks(place, ready(mapped, offsets, parts), parts, weight), kernel_map), scale

    data, scale = under(None)
    order, counted = data.blocks.bags, data.blocks.weight
    known = supervision[order]
    sets = torch.tensor(known.candidates, device=X.device)
    noise = expected_noise() if isinstance(candidate_noise, str) else float(candidate_noise)
    log_prior = torch.tensor(label_log_prior(known.candidates, known.weights, Belief(), noise), device=X.device)

    def likelihoods(data: LowRank, which: list[int]) -> BagLikelihoods:
        """Fits without some of the halves."""
        fits = fits_of(data, halves[order]).others()
        W, grams = fits.W[:, which], [fits.grams[i] for i in which]
        given = data.blocks, W, grams, data.spectrum, log_prior, SIGNAL_VARIANCES[-1], background
        prior = label_posterior(PRIOR_SCALE * fit_bag_regressions(*given).log_evidence, log_prior[:, None])
        diagonals = torch.stack([gram.diagonal() for gram in grams]).clamp(min=0)
        trusted = trusted_sets(log_prior, sets, prior)
        return fit_bag_likelihoods(data.blocks, W, diagonals, prior, trusted, kappa, background, METRIC_STAGES)

    plain = likelihoods(data, [0, 1])
    rows, features = X[chosen], data.kernel_map(X[chosen])
    logits = torch.stack([expert._replace(variance=None).logits(features) for expert in plain.experts])
    coef = torch.stack([data.kernel_map.T @ expert.coef.to(X.dtype) for expert in plain.experts], dim=1)
    products = _products(rows, Z, scale, coef, logits, None if of_rows is None else of_rows[chosen])
    covariance = torch.cov(X.T, correction=0, aweights=of_rows).double()
    shared, *own = (metric_of(M, covariance) for M in products)
    if shared is None or _disagreement(products[0]) > METRIC_DISAGREEMENT:
        return None

    half = torch.from_numpy(halves[order]).to(X.device)
    gains = torch.zeros_like(log_prior[:, 0])
    for i, S in enumerate(own):
        if S is None:
            return None
        new, unseen, tested = likelihoods(under(S)[0], [i]), half == i, half <= i
        given = log_prior[unseen], None if counted is None else counted[unseen]
        before, after = plain.log_evidence[unseen, i], new.log_evidence[unseen, 0]
        gains[unseen] = _log_likelihood(after, *given) - _log_likelihood(before, *given)
        mean, error = mean_and_error(gains[tested], None if counted is None else counted[tested])
        if mean + error < METRIC_GAIN:
            return None
    return shared if mean > max(2 * error, METRIC_GAIN) else None


def _disagreement(M: Tensor) -> float:
    """What is negative in M beside what is positive."""
    values = torch.linalg.eigvalsh(M)
    return float(-values.clamp(max=0).sum() / values.clamp(min=0).sum())


def _log_likelihood(log_evidence: Tensor, log_prior: Tensor, weight: Tensor | None) -> Tensor:
    """Log probability (m,) of what is known of labels (m, q), at the scale and outlier rate that suit the evidence."""
    stacking = fit_stacking(log_evidence, log_evidence, log_prior, weight)
    return set_log_likelihood(torch.log(stacking.probabilities(log_evidence, log_evidence)), log_prior)


def gradients(X: Tensor, Z: Tensor, lengthscale: float, coef: Tensor) -> Tensor:
    """Gradients (n, k, d) at rows (n, d) of functions that are the kernel with landmarks (M, d) times coef (M, k)."""
    centre = Z.mean(dim=0)
    X, Z, a = X - centre, Z - centre, math.sqrt(5) / lengthscale
    distance = a * torch.cdist(X, Z)
    h = a * a / 3 * (1 + distance) * torch.exp(-distance)
    pulled = (h @ (coef[:, :, None] * Z[:, None]).flatten(1)).view(len(X), -1, Z.shape[1])
    return pulled - (h @ coef)[:, :, None] * X[:, None]


def _products(
    X: Tensor, Z: Tensor, lengthscale: float, coef: Tensor, logits: Tensor, weight: Tensor | None
) -> list[Tensor]:
    """M (d, d) of both fits, of the first and of the second alone, from coef (M, 2, q) and logits (2, n, q)."""
    q, d = coef.shape[2], X.shape[1]
    each = [logits.mean(dim=0), *logits]
    p = [torch.softmax(torch.nn.functional.pad(f, (0, 1)), dim=1)[:, :-1].to(X.dtype) for f in each]
    total = [torch.zeros(d, d, dtype=torch.float64, device=X.device) for _ in each]
    for rows in torch.arange(len(X), device=X.device).split(256):
        A, B = gradients(X[rows], Z, lengthscale, coef.flatten(1)).view(-1, 2, q, d).unbind(1)
        for M, probability, first, second in zip(total, p, (A, A, B), (B, A, B), strict=True):
            P = probability[rows, :, None]
            left = P * first
            left -= P * left.sum(dim=1, keepdim=True)
            if weight is not None:
                left *= weight[rows, None, None]
            M += (left.flatten(0, 1).T @ second.flatten(0, 1)).double()
    return [(M + M.T) / 2 for M in total]


def metric_of(M: Tensor, covariance: Tensor) -> Tensor | None:
    """S (d, d) of a product M (d, d) and the features' covariance (d, d); None where M has nothing positive."""
    if not bool(torch.isfinite(M).all() and torch.isfinite(covariance).all()):
        return None
    values, axes = torch.linalg.eigh(M)
    M = (axes * values.clamp(min=0)) @ axes.T
    told, total = float((M * covariance).sum()), float(covariance.trace())
    if not (told > 0 and total > 0):
        return None
    metric = METRIC_SHARE * total / told * M + (1 - METRIC_SHARE) * torch.eye(len(M), dtype=M.dtype, device=M.device)
    values, axes = torch.linalg.eigh(metric)
    root: Tensor = (axes * values.clamp(min=0).sqrt()) @ axes.T
    return root
