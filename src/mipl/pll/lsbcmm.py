"""LSB-CMM: regions of feature space, chosen by logistic stick breaking, that share a distribution over labels."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, log_expit
from sklearn.utils._param_validation import Interval

from mipl.pll.base import PLLClassifier
from mipl.pll.linear_weights import curvature_coordinates, minimize_weights, span_of_samples

__all__ = ["LSBCMM"]

Array = NDArray[np.float64]


class _Posterior(NamedTuple):
    """What the E-step learns: Dirichlet counts (K, q), weighted responsibilities (n, K), and the log evidence bound."""

    concentrations: Array
    responsibilities: Array
    bound: float


class LSBCMM(PLLClassifier):
    r"""Logistic stick-breaking conditional multinomial model.

    A sample :math:`x` falls into one of K regions, and each region has a distribution over labels:

    .. math:: \phi_k(x) = \sigma(w_k^\top \tilde x) \prod_{j < k} (1 - \sigma(w_j^\top \tilde x)), \qquad
              y \mid z = k \sim \mathrm{Mult}(\theta_k), \qquad \theta_k \sim \mathrm{Dir}(\alpha),

    where the last region takes what is left and :math:`w_k \sim N(0, \sigma^2 I)` but for a flat bias. The candidate
    set is any superset of y. Variational EM maximises the bound with :math:`q(\theta_k) = \mathrm{Dir}(\hat\alpha_k)`
    and :math:`q(z_i = k, y_i = l) = r_{ikl}` on the candidates:

    .. math:: r_{ikl} \propto \phi_k(x_i) \exp E[\log \theta_{kl}], \qquad
              \hat\alpha_{kl} = \alpha + \textstyle\sum_i r_{ikl},

    and the sticks by K - 1 weighted logistic regressions; a sample weight multiplies :math:`r_i` in all sums over
    samples, and the sample's part of the bound. As :math:`r` is a product of a region factor and a label
    factor, all sums over it are products of (n, K), (K, q) and (n, q) matrices and r itself is never formed. The
    regressions are solved together. The prediction is
    :math:`p(y = l \mid x) = \sum_k \phi_k(x) \hat\alpha_{kl} / \sum_{l'} \hat\alpha_{kl'}`.

    Parameters
    ----------
    regions_per_class : int, default=5
        K divided by q.
    alpha : float, default=0.05
        Concentration :math:`\alpha` of the Dirichlet prior; below one, regions prefer few labels.
    sigma2 : float, default=1.0
        Prior variance :math:`\sigma^2` of the weights.
    max_iter : int, default=100
        EM iterations at most.
    tol : float, default=1e-4
        Stop when the mean bound of the last three iterations exceeds that of the three before by less than this, in
        relative terms.
    max_stick_iter : int, default=20
        L-BFGS iterations at most on the regressions in one M-step, which start where the last one ended.

    Attributes
    ----------
    coef_ : (K - 1, d)
        Weights of the sticks.
    intercept_ : (K - 1,)
        Biases of the sticks.
    concentrations_ : (K, q)
        Dirichlet parameters :math:`\hat\alpha` of the regions' labels.
    bounds_ : (n_iter,)
        Evidence lower bound after each iteration.
    n_iter_ : int
        EM iterations that were made.

    References
    ----------
    L. Liu, T. G. Dietterich. A conditional multinomial mixture model for superset label learning. NIPS 2012.
    """

    name = "LSB-CMM"
    penalises_weights = True
    citation = "Liu & Dietterich, NIPS 2012"
    supports_sample_weight = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "regions_per_class": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "sigma2": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_stick_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        regions_per_class: int = 5,
        alpha: float = 0.05,
        sigma2: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-4,
        max_stick_iter: int = 20,
    ) -> None:
        self.regions_per_class = regions_per_class
        self.alpha = alpha
        self.sigma2 = sigma2
        self.max_iter = max_iter
        self.tol = tol
        self.max_stick_iter = max_stick_iter

    def _fit(self, Z: Array, candidates: NDArray[np.bool_]) -> None:
        self._fit_weighted(Z, candidates, np.ones(len(Z)))

    def _fit_weighted(self, Z: Array, candidates: NDArray[np.bool_], weight: Array) -> None:
        count = weight[:, None]
        n_classes = candidates.shape[1]
        n_regions = self.regions_per_class * n_classes
        basis, features = span_of_samples(Z)
        design = np.column_stack([features, np.ones(len(Z))])
        penalty = np.append(np.full(features.shape[1], 1 / self.sigma2), 0.0)
        coordinates = curvature_coordinates(np.sqrt(count) * design, 0.25, penalty)
        labels = candidates.astype(np.float64)

        # Regions start out with one favourite class each, in turn, and everywhere equally likely.
        favourite = np.arange(n_regions)[:, None] % n_classes == np.arange(n_classes)
        posterior = self._expect(np.zeros((len(Z), n_regions)), 1 + 10.0 * favourite, labels, count)
        weights = np.zeros((design.shape[1], n_regions - 1))
        bounds: list[float] = []
        for _ in range(self.max_iter):
            taken = np.ascontiguousarray(posterior.responsibilities[:, :-1])
            reached = taken + np.cumsum(posterior.responsibilities[:, :0:-1], axis=1)[:, ::-1]
            loss = partial(_stick_loss, design=design, taken=taken, reached=reached, penalty=penalty)
            weights = minimize_weights(loss, weights, coordinates, max_iter=self.max_stick_iter, tol=1e-2).point
            posterior = self._expect(_log_regions(design @ weights), posterior.concentrations, labels, count)
            bounds.append(posterior.bound - 0.5 * float(penalty @ np.sum(weights**2, axis=1)))
            if len(bounds) > 10:
                gain = np.mean(bounds[-3:]) - np.mean(bounds[-6:-3])
                if gain < self.tol * abs(np.mean(bounds[-6:-3])):
                    break
        self.coef_, self.intercept_ = weights[:-1].T @ basis.T, weights[-1].copy()
        self.concentrations_ = posterior.concentrations
        self.bounds_ = np.array(bounds)
        self.n_iter_ = len(bounds)

    def _expect(self, log_regions: Array, concentrations: Array, labels: Array, count: Array) -> _Posterior:
        """One coordinate step on q(z, y), then one on q(theta), and the bound without the prior of the sticks.

        Shapes: log_regions (n, K), concentrations (K, q), labels (n, q), sample weights `count` (n, 1).
        """
        # The floor keeps exp above zero when alpha is tiny; the bound below holds for any factor.
        log_factor = np.maximum(_expected_log(concentrations), -600)
        factor = np.exp(log_factor)
        shift = log_regions.max(axis=1, keepdims=True)
        regions = np.exp(log_regions - shift)
        joint = regions * (labels @ factor.T)  # (n, K)
        total = joint.sum(axis=1, keepdims=True)
        counts = factor * ((count * (regions / total)).T @ labels)
        updated = self.alpha + counts
        # With q(z, y) optimal for the old theta, its part of the bound is log(total) there; the new theta moves it.
        bound = np.sum(count * (np.log(total) + shift)) + np.sum(counts * (_expected_log(updated) - log_factor))
        bound -= _dirichlet_divergence(updated, self.alpha)
        return _Posterior(updated, count * (joint / total), float(bound))

    def _predict_proba(self, Z: Array) -> Array:
        regions = np.exp(_log_regions(Z @ self.coef_.T + self.intercept_))
        proba = regions @ (self.concentrations_ / self.concentrations_.sum(axis=1, keepdims=True))
        shares: Array = proba / proba.sum(axis=1, keepdims=True)
        return shares


def _log_regions(scores: Array) -> Array:
    """Turn stick scores (n, K - 1) into log region probabilities (n, K)."""
    n = len(scores)
    broken = np.concatenate([log_expit(scores), np.zeros((n, 1))], axis=1)
    passed = np.concatenate([np.zeros((n, 1)), np.cumsum(log_expit(-scores), axis=1)], axis=1)
    log_regions: Array = broken + passed
    return log_regions


def _stick_loss(weights: Array, design: Array, taken: Array, reached: Array, penalty: Array) -> tuple[float, Array]:
    """Value and gradient (d + 1, K - 1) of the weighted logistic regressions.

    `taken` (n, K - 1) is the responsibility of region k, `reached` that of region k and all later ones.
    """
    scores = design @ weights
    # log(1 + exp(s)) and its derivative from one exponential that cannot overflow: this is where the time goes.
    decay = np.exp(-np.abs(scores))
    softplus = np.maximum(scores, 0) + np.log1p(decay)
    sigmoid = np.where(scores >= 0, 1, decay) / (1 + decay)
    value = np.vdot(reached, softplus) - np.vdot(taken, scores)
    gradient = design.T @ (reached * sigmoid - taken)
    gradient += penalty[:, None] * weights
    return float(value + 0.5 * penalty @ np.sum(weights**2, axis=1)), gradient


def _expected_log(concentrations: Array) -> Array:
    """E[log theta] (K, q) under Dirichlets (K, q)."""
    expected: Array = digamma(concentrations) - digamma(concentrations.sum(axis=1, keepdims=True))
    return expected


def _dirichlet_divergence(concentrations: Array, prior: float) -> float:
    """Kullback-Leibler divergence of Dirichlets (K, q) from the symmetric prior, summed over regions."""
    n_classes = concentrations.shape[1]
    normalisers = gammaln(concentrations.sum(axis=1)) - gammaln(concentrations).sum(axis=1)
    prior_normaliser = gammaln(prior * n_classes) - n_classes * gammaln(prior)
    return float(
        np.sum(normalisers - prior_normaliser) + np.sum((concentrations - prior) * _expected_log(concentrations))
    )
