"""L-BFGS on arrays of any shape: the one place that calls SciPy's implementation of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Minimum", "minimize_lbfgs"]

Array = NDArray[np.float64]


class Minimum(NamedTuple):
    """Where the search ended, in the shape of its start, and the number of iterations that led there."""

    point: Array
    n_iter: int


def minimize_lbfgs(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    max_iter: int,
    tol: float,
    max_evaluations: int = 15_000,
    each: Callable[[int], None] | None = None,
) -> Minimum:
    """Minimise a smooth function that returns its value and its gradient.

    The gradient alone decides when to stop: a small step of the value says little where the value is a sum over many
    samples. L-BFGS takes as many steps as the problem is badly conditioned, so pass coordinates in which the curvature
    is near the identity, and map them to the problem's own inside `objective`.

    Parameters
    ----------
    objective : callable, array -> float, array
        Value and gradient; both arrays have the shape of `start`.
    start : array of any shape
        Where the search begins.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when no entry of the gradient exceeds this.
    max_evaluations : int, default=15000
        Calls of `objective` at most; a line search can take several per iteration.
    each : callable, int -> None, default=None
        Called after each iteration with the number of iterations so far.

    Examples
    --------
    >>> def squares(x):
    ...     return float(np.sum((x - 3) ** 2)), 2 * (x - 3)
    >>> minimize_lbfgs(squares, np.zeros((1, 2)), max_iter=9, tol=1e-6).point.round(6)
    array([[3., 3.]])
    """

    def flat(x: Array) -> tuple[float, Array]:
        value, gradient = objective(x.reshape(start.shape))
        return value, gradient.ravel()

    taken = count(1)
    result = minimize(
        flat,
        start.ravel(),
        method="L-BFGS-B",
        jac=True,
        callback=None if each is None else lambda _: each(next(taken)),
        options={"maxiter": max_iter, "maxfun": max_evaluations, "gtol": tol, "ftol": 0.0},
    )
    return Minimum(result.x.reshape(start.shape), int(result.nit))
