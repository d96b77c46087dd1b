"""Weights of linear models, by L-BFGS in coordinates in which a bound on the curvature is the identity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from mipl.lbfgs import Minimum, minimize_lbfgs

__all__ = ["curvature_coordinates", "minimize_weights", "span_of_samples"]

Array = NDArray[np.float64]


def span_of_samples(Z: Array) -> tuple[Array, Array]:
    """Give orthonormal columns B (d, r), r = min(n, d), that span the samples (n, d), and their coordinates (n, r).

    Under a penalty on the squared length of the weights, the best weights lie in this span: a problem with more
    features than samples can be solved in the coordinates, and its weights are ``B @ w``.
    """
    n, d = Z.shape
    if d <= n:
        return np.eye(d), Z
    basis, triangle = np.linalg.qr(Z.T)
    return basis, triangle.T.copy()


def curvature_coordinates(design: Array, curvature: float, penalty: Array) -> Array:
    """Give T (p, p) with ``T' H T = I`` for the bound ``H = curvature * design' design + diag(penalty)``.

    For losses of scores ``design @ weights`` whose second derivative is at most `curvature`, H bounds the Hessian of
    every column of the weights. In the coordinates ``weights = T @ v`` the problem is well conditioned whatever the
    scales and correlations of the features.
    """
    bound = curvature * design.T @ design
    bound.flat[:: len(bound) + 1] += penalty
    values, vectors = eigh(bound)
    # Directions below rounding carry no signal; the floor keeps them from blowing up.
    coordinates: Array = vectors / np.sqrt(np.maximum(values, values[-1] * 1e-14))
    return coordinates


def minimize_weights(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    coordinates: Array,
    *,
    max_iter: int,
    tol: float,
) -> Minimum:
    """Minimise a smooth function of weights (p, q) that returns its value and its gradient (p, q).

    Parameters
    ----------
    objective : (p, q) -> float, (p, q)
    start : (p, q)
    coordinates : (p, p)
        From `curvature_coordinates`.
    max_iter : int
        L-BFGS iterations at most; the objective is evaluated at most twice as often.
    tol : float
        Stop when no entry of the gradient, in the coordinates, exceeds this.
    """

    def in_coordinates(step: Array) -> tuple[float, Array]:
        value, gradient = objective(start + coordinates @ step)
        return value, coordinates.T @ gradient

    minimum = minimize_lbfgs(
        in_coordinates, np.zeros_like(start), max_iter=max_iter, tol=tol, max_evaluations=2 * max_iter
    )
    return Minimum(start + coordinates @ minimum.point, minimum.n_iter)
