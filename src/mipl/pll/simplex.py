"""Candidate simplices: the projection onto them, and minimisation over them.

The candidate simplex of a row is the set of probability vectors that vanish off the row's candidates. Several methods
keep one labelling confidence of this kind for each sample, and PL-AGGD keeps its graph weights on simplices too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["minimize_on_simplices", "project_simplex"]

Array = NDArray[np.float64]


def project_simplex(values: Array, support: NDArray[np.bool_]) -> Array:
    """Project each row onto the simplex over its support, in the Euclidean norm.

    The projection subtracts a threshold from the row and cuts at zero; the threshold comes from the sorted row
    (Held, Wolfe and Crowder, 1974). The order of the entries is kept.

    Parameters
    ----------
    values : (n, q)
    support : bool (n, q), at least one True in each row

    Examples
    --------
    >>> project_simplex(np.array([[0.9, 0.5, 7.0]]), np.array([[True, True, False]]))
    array([[0.7, 0.3, 0. ]])
    """
    inside = np.where(support, values, -np.inf)
    inside -= inside.max(axis=1, keepdims=True)  # The projection ignores a shift; this one keeps small gaps exact.
    ordered = -np.sort(-inside, axis=1)
    threshold = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    n_positive = np.count_nonzero(ordered > threshold, axis=1)
    return np.maximum(inside - threshold[np.arange(len(values)), n_positive - 1, None], 0)


def minimize_on_simplices(
    gradient: Callable[[Array], Array],
    lipschitz: float,
    start: Array,
    support: NDArray[np.bool_],
    *,
    tol: float = 1e-7,
    max_iter: int = 1000,
) -> Array:
    """Minimise a smooth convex function of an (n, q) matrix whose rows lie on simplices.

    Accelerated projected gradient (Beck and Teboulle, 2009) that drops its momentum when it points uphill
    (O'Donoghue and Candès, 2015).

    Parameters
    ----------
    gradient : (n, q) -> (n, q)
    lipschitz : float
        Bound on the gradient's Lipschitz constant.
    start : (n, q)
    support : bool (n, q)
    tol : float, default=1e-7
        Stop when no entry moves by more than this.
    max_iter : int, default=1000
        Steps at most.
    """
    current = point = start
    pace = 1.0
    for _ in range(max_iter):
        following = project_simplex(point - gradient(point) / lipschitz, support)
        move = following - current
        if np.vdot(point - following, move) > 0:
            pace = 1.0
        next_pace = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        point = following + (pace - 1) / next_pace * move
        current, pace = following, next_pace
        if np.abs(move).max() <= tol:
            break
    return current
