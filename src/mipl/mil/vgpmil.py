"""VGPMIL: a sparse Gaussian process over instances, a bag being as positive as its best instance."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.utils._param_validation import Interval

from mipl.bags import Bags
from mipl.mil.bag_labels import inherited_labels, positive_bag_labels
from mipl.mil.base import LogOdds, MILClassifier
from mipl.mil.inducing import InducingPoints, Posterior, jaakkola, residual_variance
from mipl.progress import track

__all__ = ["VGPMIL", "converged"]

Array = NDArray[np.float64]


class VGPMIL(MILClassifier):
    r"""Variational Gaussian process multi-instance learning.

    An instance has a latent value :math:`f_n`, a Gaussian process with inducing points (see `InducingPoints`), and a
    label :math:`y_n \sim \mathrm{Bern}(\sigma(f_n))`; the label of a bag is the maximum of its instances' labels.
    Coordinate ascent on the evidence lower bound with Jaakkola and Jordan's bound of the logistic function at
    :math:`\xi_n`, :math:`\pi_n = q(y_n = 1)` and whitened features :math:`\phi_n` alternates

    .. math:: \Sigma^{-1} = I + \sum_n 2 \lambda(\xi_n) \phi_n \phi_n^\top, \quad
              \mu = \Sigma \sum_n (\pi_n - \tfrac12) \phi_n, \quad \xi_n^2 = E f_n^2, \quad
              \pi_n = \sigma \big( E f_n + \log H \textstyle\prod_{k \ne n} (1 - \pi_k) \big)

    in positive bags (products over the bag, :math:`H = 10^{12}`) and :math:`\pi_n = 0` in negative ones. The paper puts
    :math:`1 - \max_{k \ne n} \pi_k` for the product, the probability that no other instance is positive, and updates
    all instances of a bag at once; with the product and the instances in turn (`positive_bag_labels`) no step lowers
    the bound. At the start every instance has the label of its bag.

    A bag's log-odds are the largest :math:`E f_n` of its instances.

    Parameters
    ----------
    n_inducing : int, default=50
        Number M of inducing points: k-means centres, as many from negative as from positive bags.
    lengthscale : float or None, default=None
        Of the squared-exponential kernel on standardized features; None takes the median distance over
        :math:`\sqrt 2`.
    max_iter : int, default=50
        Rounds of coordinate ascent at most.
    tol : float, default=1e-5
        Stop when a round raises the bound by less than this share of it.
    random_state : int, RandomState or None, default=0
        Seed of the inducing points.
    verbose : bool, default=False
        Show a progress bar on a terminal.

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

    name = "VGPMIL"
    citation = "Haussmann, Hamprecht & Kandemir, CVPR 2017"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_inducing": [Interval(Integral, 1, None, closed="left")],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_inducing: int = 50,
        lengthscale: float | None = None,
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.n_inducing = n_inducing
        self.lengthscale = lengthscale
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _front_end(self) -> InducingPoints:
        return InducingPoints(n_inducing=self.n_inducing, lengthscale=self.lengthscale, random_state=self.random_state)

    def _fit(self, features: Array, bags: Bags, copies: NDArray[np.int64]) -> None:
        weight = bags.spread(copies.astype(np.float64))  # (n, 2): negative, positive
        total = weight.sum(axis=1)
        residual = residual_variance(features)
        xi = np.ones(len(features))
        labels = inherited_labels(bags)
        pull = weight[:, 1] * labels.probability - total / 2
        bounds: list[float] = []
        for _ in track(range(self.max_iter), self.name, verbose=self.verbose):
            posterior = Posterior.given(features, 2 * total * jaakkola(xi), pull)
            first, second = posterior.moments(features, residual)
            xi = np.sqrt(second)
            labels = positive_bag_labels(bags, first, labels)
            pull = weight[:, 1] * labels.probability - total / 2
            bound = pull @ first + total @ (log_expit(xi) - xi / 2) + copies[:, 1] @ labels.bound
            bounds.append(float(bound - posterior.divergence()))
            if converged(bounds, self.tol):
                break
        self.mean_, self.bounds_ = posterior.mean, np.array(bounds)

    def _log_odds(self, features: Array, bags: Bags) -> LogOdds:
        instances = features @ self.mean_
        return bags.max(instances), instances


def converged(bounds: list[float], tol: float) -> bool:
    """Whether the last round raised the bound by less than the share `tol` of it."""
    return len(bounds) > 1 and bounds[-1] - bounds[-2] < tol * abs(bounds[-1])
