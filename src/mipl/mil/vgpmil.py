"""VGPMIL: a sparse Gaussian process over instances, a bag being as positive as its best instance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from mipl.bags import Bags
from mipl.mil.bag_labels import positive_bag_labels
from mipl.mil.base import LogOdds, MILClassifier
from mipl.mil.inducing import InducingPoints, Posterior, jaakkola, residual_variance
from mipl.mil.ovr import OneVsRest

__all__ = ["VGPMIL", "VGPMILBags"]

Array = NDArray[np.float64]


class VGPMIL(MILClassifier):
    r"""Variational Gaussian process multi-instance learning.

    An instance has a latent value :math:`f_n`, a Gaussian process with inducing points (see `InducingPoints`), and a
    label :math:`y_n \sim \mathrm{Bern}(\sigma(f_n))`; the label of a bag is the maximum of its instances' labels.
    Coordinate ascent on the evidence lower bound with Jaakkola and Jordan's bound of the logistic function at
    :math:`\xi_n`, :math:`\pi_n = q(y_n = 1)` and whitened features :math:`\phi_n` alternates

    .. math:: \Sigma^{-1} = I + \sum_n 2 \lambda(\xi_n) \phi_n \phi_n^\top, \quad
              \mu = \Sigma \sum_n (\pi_n - \tfrac12) \phi_n, \quad
              \xi_n^2 = E f_n^2, \quad \pi = \text{labels given } E f_n \text{ and the bag's label}.

    The paper gives each instance of a bag a factor of its own, with the expected maximum of the others replaced by
    the maximum of their expectations, and softens the maximum by a factor :math:`H = 10^{12}`. Here q is the exact
    joint distribution of a bag's labels under a hard maximum (`positive_bag_labels`). It is available in closed form,
    makes the bound tighter, and no step lowers the bound; updating all factors of a bag at once can.

    A bag's log-odds are the largest :math:`E f_n` of its instances.

    Parameters
    ----------
    n_inducing : int
        Number M of inducing points: k-means centres, as many from negative as from positive bags.
    lengthscale : float or None
        Of the squared-exponential kernel on standardized features; None takes the median distance over
        :math:`\sqrt 2`.
    max_iter : int
        Rounds of coordinate ascent at most.
    tol : float
        Stop when a round raises the bound by less than this share of it.
    random_state : int
        Seed of the inducing points.

    Attributes
    ----------
    mean_ : (M,)
        Posterior mean of the whitened inducing values.
    bounds_ : (rounds,)
        The evidence lower bound after each round; it never falls.

    References
    ----------
    M. Haussmann, F. A. Hamprecht, M. Kandemir. Variational Bayesian multiple instance learning with Gaussian
    processes. CVPR 2017.
    """

    citation = "Haussmann, Hamprecht & Kandemir, CVPR 2017"

    def __init__(
        self,
        *,
        n_inducing: int = 50,
        lengthscale: float | None = None,
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: int = 0,
    ) -> None:
        self.n_inducing = n_inducing
        self.lengthscale = lengthscale
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _front_end(self) -> InducingPoints:
        return InducingPoints(
            n_inducing=self.n_inducing, lengthscale=self.lengthscale, random_state=self.random_state
        )

    def _fit(self, features: Array, bags: Bags, copies: NDArray[np.int64]) -> None:
        state = ascend_instances(features, bags, copies, self.max_iter, self.tol)
        self.mean_, self.bounds_ = state.mean, state.bounds

    def _log_odds(self, features: Array, bags: Bags) -> LogOdds:
        instances = features @ self.mean_
        return bags.max(instances), instances


class InstanceState(NamedTuple):
    """Where the coordinate ascent of VGPMIL ends.

    Attributes
    ----------
    mean : (M,)
        Of q(v).
    first, second : (n,)
        E f and E f^2.
    positive : (n,)
        q(y = 1), were the bag positive; in a negative bag it is zero.
    bounds : (rounds,)
    """

    mean: Array
    first: Array
    second: Array
    positive: Array
    bounds: Array


def ascend_instances(
    features: Array, bags: Bags, copies: NDArray[np.int64], max_iter: int, tol: float
) -> InstanceState:
    """Coordinate ascent of VGPMIL from the prior, f = 0 with unit variance."""
    weight = bags.spread(copies.astype(np.float64))  # (n, 2): negative, positive
    total = weight.sum(axis=1)
    residual = residual_variance(features)
    xi = np.ones(len(features))
    labels = positive_bag_labels(bags, np.zeros(len(features)))
    bounds: list[float] = []
    for _ in range(max_iter):
        target = weight[:, 1] * labels.probability - total / 2
        posterior = Posterior.given(features, 2 * total * jaakkola(xi), target)
        first, second = posterior.moments(features, residual)
        xi = np.sqrt(second)
        labels = positive_bag_labels(bags, first)
        evidence = (weight[:, 1] * labels.probability - total / 2) @ first + total @ (log_expit(xi) - xi / 2)
        bounds.append(float(evidence + copies[:, 1] @ labels.entropy - posterior.divergence()))
        if converged(bounds, tol):
            break
    return InstanceState(posterior.mean, first, second, labels.probability, np.array(bounds))


def converged(bounds: list[float], tol: float) -> bool:
    """Whether the last round raised the bound by less than the share `tol` of it."""
    return len(bounds) > 1 and bounds[-1] - bounds[-2] < tol * abs(bounds[-1])


class VGPMILBags(OneVsRest, learner=VGPMIL):
    """VGPMIL, one class against the rest; see `VGPMIL` and `OneVsRest`."""

    name = "VGPMIL"
