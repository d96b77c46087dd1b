"""CLPL: one convex loss on the mean score of the candidates and on every other score."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils._param_validation import Interval

from mipl.candidates import uniform_weights
from mipl.pll.base import PLLClassifier
from mipl.pll.linear_weights import curvature_coordinates, minimize_weights, span_of_samples

__all__ = ["CLPL", "clpl_objective"]

Array = NDArray[np.float64]


def clpl_objective(
    weights: Array, design: Array, candidates: NDArray[np.bool_], C: float, sample_weight: Array
) -> tuple[float, Array]:
    """Value and gradient (d + 1, q) of the objective of `CLPL`.

    The design (n, d + 1) is the samples and a column of ones, the last row of the weights (d + 1, q) the bias; the loss
    of each sample is multiplied by its weight (n,).
    """
    count = sample_weight[:, None]
    share = uniform_weights(candidates)
    scores = design @ weights
    short_of_margin = np.maximum(0, 1 - np.sum(share * scores, axis=1, keepdims=True))  # (n, 1)
    above_margin = np.where(candidates, 0, np.maximum(0, 1 + scores))  # (n, q)
    loss = np.sum(count * short_of_margin**2) + np.sum(count * above_margin**2)
    gradient = 2 * C * design.T @ (count * (above_margin - share * short_of_margin))
    gradient[:-1] += weights[:-1]
    return 0.5 * np.sum(weights[:-1] ** 2) + C * loss, gradient


class CLPL(PLLClassifier):
    r"""Convex learning from partial labels.

    Linear scores :math:`g_l(x) = w_l^\top x + b_l` minimise, with the squared hinge
    :math:`\psi(z) = \max(0, 1 - z)^2` and candidate sets :math:`S_i`,

    .. math:: \frac{1}{2} \|W\|_F^2 + C \sum_i \left[ \psi\left(\frac{1}{|S_i|} \sum_{l \in S_i} g_l(x_i)\right)
              + \sum_{l \notin S_i} \psi(-g_l(x_i)) \right].

    The mean over candidates is the tightest convex bound of its kind on the loss of the best candidate. With one
    candidate per sample it is a one-versus-rest linear support vector machine. The objective is convex and smooth and
    is minimised by L-BFGS; the bias is not penalised. A sample weight multiplies the bracket of its sample.
    `predict_proba` is the softmax of the scores, a monotone rescaling that was not calibrated.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty.
    max_iter : int, default=1000
        L-BFGS iterations at most.
    tol : float, default=1e-3
        Stop when no entry of the gradient, in well-conditioned coordinates, exceeds this.

    Attributes
    ----------
    coef_ : (q, d)
        Weights of the scores.
    intercept_ : (q,)
        Biases of the scores.
    n_iter_ : int
        L-BFGS iterations that were made.

    References
    ----------
    T. Cour, B. Sapp, B. Taskar. Learning from partial labels. Journal of Machine Learning Research 12, 2011.
    """

    name = "CLPL"
    penalises_weights = True
    citation = "Cour, Sapp & Taskar, JMLR 2011"
    supports_sample_weight = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, C: float = 1.0, max_iter: int = 1000, tol: float = 1e-3) -> None:
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, Z: Array, candidates: NDArray[np.bool_]) -> None:
        self._fit_weighted(Z, candidates, np.ones(len(Z)))

    def _fit_weighted(self, Z: Array, candidates: NDArray[np.bool_], weight: Array) -> None:
        basis, features = span_of_samples(Z)
        design = np.column_stack([features, np.ones(len(Z))])
        penalty = np.append(np.ones(features.shape[1]), 0.0)
        minimum = minimize_weights(
            partial(clpl_objective, design=design, candidates=candidates, C=self.C, sample_weight=weight),
            np.zeros((design.shape[1], candidates.shape[1])),
            curvature_coordinates(np.sqrt(weight)[:, None] * design, 2 * self.C, penalty),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.coef_, self.intercept_ = minimum.point[:-1].T @ basis.T, minimum.point[-1].copy()
        self.n_iter_ = minimum.n_iter

    def _predict_proba(self, Z: Array) -> Array:
        proba: Array = softmax(Z @ self.coef_.T + self.intercept_, axis=1)
        return proba
