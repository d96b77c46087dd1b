"""L-BFGS on arrays of any shape: SciPy's implementation, and the same steps with sums that no thread changes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.optimize._linesearch import scalar_search_wolfe1

__all__ = ["Minimum", "minimize_lbfgs"]

Array = NDArray[np.float64]

#: Entries up to which OpenBLAS adds up products with one thread. Beyond, SciPy's steps depend on its number of threads.
_ONE_THREAD = 10_000
#: Steps that are remembered, and the bounds of the line search, as SciPy has them.
_MEMORY, _DECREASE, _CURVATURE, _STEP_TOLERANCE, _LONGEST = 10, 1e-3, 0.9, 0.1, 10**10


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

    The result does not depend on the number of threads of any library.

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

    if start.size > _ONE_THREAD:
        point, n_iter = _minimize(flat, start.ravel(), max_iter, tol, max_evaluations, each)
        return Minimum(point.reshape(start.shape), n_iter)
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


class _Evaluation(NamedTuple):
    """A point, and value and gradient there."""

    point: Array
    value: float
    gradient: Array


class _Move(NamedTuple):
    """What a step changed in point and gradient, and the product of the two."""

    point: Array
    gradient: Array
    product: float


def _minimize(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    tol: float,
    max_evaluations: int,
    each: Callable[[int], None] | None,
) -> tuple[Array, int]:
    """The steps of SciPy's L-BFGS-B without bounds, but for rounding."""
    now = _Evaluation(start.copy(), *objective(start))
    moves: deque[_Move] = deque(maxlen=_MEMORY)
    n_evaluations, n_iter = 1, 0
    while n_iter < max_iter and n_evaluations <= max_evaluations and np.abs(now.gradient).max() > tol:
        direction = _direction(moves, now.gradient)
        if not moves:
            direction /= max(math.sqrt(_dot(direction, direction)), 1 / _LONGEST)  # a first step of length one
        found, taken = _search(objective, now, direction)
        n_evaluations += taken
        if found is None:
            if not moves:
                break
            moves.clear()  # what is remembered misleads; begin anew from here
            continue
        move, change = found.point - now.point, found.gradient - now.gradient
        product = _dot(move, change)
        if product > -np.finfo(float).eps * _dot(now.gradient, move):
            moves.append(_Move(move, change, product))
        stuck = found.value >= now.value
        now, n_iter = found, n_iter + 1
        if each is not None:
            each(n_iter)
        if stuck:
            break
    return now.point, n_iter


def _direction(moves: deque[_Move], gradient: Array) -> Array:
    """Minus the gradient times the inverse Hessian that the last moves suggest."""
    direction = -gradient
    shares = []
    for move in reversed(moves):
        shares.append(_dot(move.point, direction) / move.product)
        direction -= shares[-1] * move.gradient
    if moves:
        last = moves[-1]
        direction *= last.product / _dot(last.gradient, last.gradient)
    for move, share in zip(moves, reversed(shares), strict=True):
        direction += (share - _dot(move.gradient, direction) / move.product) * move.point
    return direction


def _search(
    objective: Callable[[Array], tuple[float, Array]], now: _Evaluation, direction: Array
) -> tuple[_Evaluation | None, int]:
    """A point along the direction that fulfils the strong Wolfe conditions, and the number of evaluations."""
    seen: dict[float, _Evaluation] = {}

    def at(step: float) -> _Evaluation:
        if step not in seen:
            point = now.point + step * direction
            seen[step] = _Evaluation(point, *objective(point))
        return seen[step]

    slope = _dot(now.gradient, direction)
    if slope >= 0:
        return None, 0
    step, _, _ = scalar_search_wolfe1(
        lambda a: at(a).value,
        lambda a: _dot(at(a).gradient, direction),
        now.value,
        None,
        slope,
        c1=_DECREASE,
        c2=_CURVATURE,
        amax=_LONGEST,
        amin=0.0,
        xtol=_STEP_TOLERANCE,
    )
    return (None if step is None else at(step)), len(seen)


def _dot(a: Array, b: Array) -> float:
    """The sum of products, in an order that depends on the length alone."""
    return float(np.sum(a * b))
