"""The sparse Gaussian process that VWSGP, VGPMIL and LM-VGPMIL share."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches

from mipl.bags import Bags
from mipl.compute import seed_of
from mipl.errors import ParameterError
from mipl.mil.standardizer import Standardizer

__all__ = ["InducingPoints", "Posterior", "jaakkola", "residual_variance"]

_JITTER = 1e-6
# `mipl.gp.landmarks` has a median distance and a k-means too, on torch tensors and by a few Lloyd steps. These here are
# NumPy's and scikit-learn's, so that methods without networks need no torch, and k-means runs to convergence, as the
# few inducing points of these methods want it.
#: k-means learns nothing from more points per centre, and the median distance nothing from more instances.
_POINTS_PER_CENTRE = 256
_MEDIAN_INSTANCES = 1000
_BLOCK = 4096

Array = NDArray[np.float64]


class InducingPoints(BaseEstimator):  # type: ignore[misc]
    r"""Whitened features of a squared-exponential kernel at M inducing points.

    With standardized instances :math:`x`, inducing points :math:`Z` and :math:`K_{ZZ} = L L^\top`, the feature vector
    of an instance is :math:`\phi(x) = L^{-1} k(Z, x)`. The sparse process is then linear,
    :math:`f(x) = \phi(x)^\top v + e` with :math:`v \sim N(0, I)` and
    :math:`e \sim N(0, k(x, x) - \phi(x)^\top \phi(x))`, and no inverse of :math:`K_{ZZ}` is ever formed.

    Parameters
    ----------
    n_inducing : int, default=50
        M, shared out evenly among the groups of bags; fewer where a group has fewer instances.
    lengthscale : float or None, default=None
        Of the kernel, in units of standardized features; None takes the median distance of instances over
        :math:`\sqrt 2`.
    random_state : int, RandomState or None, default=0
        Seed of k-means and of the instances it sees.

    Attributes
    ----------
    standardizer_ : Standardizer
        Mean and scale of the instances.
    lengthscale_ : float
        Of the kernel, in units of standardized features.
    points_ : (M, d) float32
        k-means centres: the bags of each group contribute the same number.
    cholesky_ : (M, M)
        L.
    """

    def __init__(
        self,
        *,
        n_inducing: int = 50,
        lengthscale: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_inducing = n_inducing
        self.lengthscale = lengthscale
        self.random_state = random_state

    def fit(self, bags: Bags, groups: NDArray[np.bool_]) -> Self:
        """Place the inducing points; `groups` (m, g) says which bags hold which label."""
        groups = groups[:, groups.any(axis=0)]
        if self.n_inducing < groups.shape[1]:
            raise ParameterError(
                f"n_inducing={self.n_inducing} is too small: each of the {groups.shape[1]} labels needs a point"
            )
        rng = np.random.default_rng(seed_of(self.random_state))
        self.standardizer_ = Standardizer().fit(bags, groups)
        X = self.standardizer_.transform(bags)
        self.lengthscale_ = _median_lengthscale(X, rng) if self.lengthscale is None else float(self.lengthscale)
        shares = np.diff(np.linspace(0, self.n_inducing, groups.shape[1] + 1).astype(int))
        self.points_ = np.concatenate(
            [_centres(X[bags.spread(group)], share, rng) for group, share in zip(groups.T, shares, strict=True)]
        )
        gram = self._kernel(self.points_)
        gram[np.diag_indices_from(gram)] += _JITTER
        self.cholesky_ = cholesky(gram, lower=True)
        return self

    def transform(self, bags: Bags) -> Array:
        """The features (n, M) of all instances; no more than a block of instances is held in double precision."""
        features = np.empty((bags.n_instances, len(self.points_)))
        X = self.standardizer_.transform(bags)
        for rows in gen_batches(len(X), _BLOCK):
            features[rows] = solve_triangular(self.cholesky_, self._kernel(X[rows]).T, lower=True).T
        return features

    def _kernel(self, X: NDArray[np.float32]) -> Array:
        points = self.points_.astype(np.float64)
        kernel: Array = rbf_kernel(X.astype(np.float64), points, gamma=0.5 / self.lengthscale_**2)
        return kernel


class Posterior(NamedTuple):
    """The Gaussian posterior of v, with precision ``R R'``.

    Attributes
    ----------
    mean : (M,)
    cholesky : (M, M)
        R, lower triangular.
    """

    mean: Array
    cholesky: Array

    @classmethod
    def given(cls, features: Array, precision: Array, target: Array) -> Posterior:
        """The posterior under rows (n, M) with Gaussian terms ``target * f - precision * f ** 2 / 2``, both (n,)."""
        scaled = features * np.sqrt(precision)[:, None]
        gram = scaled.T @ scaled
        gram[np.diag_indices_from(gram)] += 1
        factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        return cls(cho_solve((factor, True), features.T @ target, check_finite=False), factor)

    def moments(self, features: Array, residual: Array) -> tuple[Array, Array]:
        """E f and E f^2 of rows (n, M) with prior variance `residual` (n,) left over, both (n,)."""
        mean = features @ self.mean
        half = solve_triangular(self.cholesky, features.T, lower=True, check_finite=False)
        return mean, mean**2 + np.einsum("mn,mn->n", half, half) + residual

    def divergence(self) -> float:
        """KL(q(v) || N(0, I))."""
        inverse = solve_triangular(self.cholesky, np.eye(len(self.mean)), lower=True, check_finite=False)
        log_determinant = 2 * np.log(np.diag(self.cholesky)).sum()
        return 0.5 * float((inverse**2).sum() + (self.mean**2).sum() - len(self.mean) + log_determinant)


def residual_variance(features: Array) -> Array:
    """k(x, x) - phi(x)' phi(x) (n,), the prior variance that the inducing points leave."""
    variance: Array = np.maximum(1 - np.einsum("nm,nm->n", features, features), 0)
    return variance


def jaakkola(xi: Array) -> Array:
    r""":math:`\lambda(\xi) = (\sigma(\xi) - 1/2) / (2 \xi)`, the curvature of Jaakkola and Jordan's logistic bound.

    .. math:: \log \sigma(-f) \ge -f / 2 + \log \sigma(\xi) - \xi / 2 - \lambda(\xi) (f^2 - \xi^2)
    """
    safe = np.maximum(xi, 1e-8)  # tanh(a) / a is 1 to double precision there, so lambda is 1/8 as it should be
    bound: Array = np.tanh(safe / 2) / (4 * safe)
    return bound


def _median_lengthscale(X: NDArray[np.float32], rng: np.random.Generator) -> float:
    chosen = rng.choice(len(X), size=min(len(X), _MEDIAN_INSTANCES), replace=False)
    distance = float(np.median(pdist(X[chosen]))) if len(X) > 1 else 0.0
    return distance / np.sqrt(2) if distance > 0 else 1.0


def _centres(X: NDArray[np.float32], n_centres: int, rng: np.random.Generator) -> NDArray[np.float32]:
    seed = int(rng.integers(2**31))
    if len(X) <= n_centres:
        return X
    if len(X) > n_centres * _POINTS_PER_CENTRE:
        X = X[rng.choice(len(X), size=n_centres * _POINTS_PER_CENTRE, replace=False)]
    centres: NDArray[np.float32]
    if n_centres == 1:
        centres = X.mean(axis=0, keepdims=True)
        return centres
    # Lloyd's algorithm finds the same centres, but sets the number of BLAS threads of the whole process meanwhile.
    search = KMeans(n_centres, n_init=1, random_state=seed, algorithm="elkan")
    centres = search.fit(X).cluster_centers_
    return centres
