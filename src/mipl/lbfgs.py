"""L-BFGS on arrays of any shape: SciPy's implementation, and the same steps with sums that no thread changes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.optimize._dcsrch import DCSRCH

__all__ = ["Minimum", "Move", "lbfgs_steps", "minimize_lbfgs"]

Array = NDArray[np.float64]

#: Entries up to which OpenBLAS adds up products with one thread. Beyond, SciPy's steps depend on its number of threads.
_ONE_THREAD = 10_000
#: Steps that are remembered, and the bounds of the line search, as SciPy has them.
_MEMORY, _DECREASE, _CURVATURE, _STEP_TOLERANCE, _LONGEST, _TRIALS = 10, 1e-3, 0.9, 0.1, 10**10, 100

#: Curvature along a move, against that of the identity, from which the move of another search is believed.
_CONVEX = 1e-8


class Move(NamedTuple):
    """What a step changed in point and gradient; the latest moves tell of the curvature."""

    point: NDArray[np.floating[Any]]
    gradient: NDArray[np.floating[Any]]


class Minimum(NamedTuple):
    """Where the search ended, in the shape of its start, the iterations that led there, and the moves remembered."""

    point: Array
    n_iter: int
    moves: tuple[Move, ...] = ()


def minimize_lbfgs(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    max_iter: int,
    tol: float,
    max_evaluations: int = 15_000,
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
        steps = lbfgs_steps(start, max_iter=max_iter, tol=tol, max_evaluations=max_evaluations)
        point = next(steps)
        try:
            while True:
                point = steps.send(objective(point))
        except StopIteration as end:
            found: Minimum = end.value
            return found
    result = minimize(
        flat,
        start.ravel(),
        method="L-BFGS-B",
        jac=True,
        options={"maxiter": max_iter, "maxfun": max_evaluations, "gtol": tol, "ftol": 0.0},
    )
    return Minimum(result.x.reshape(start.shape), int(result.nit))


def lbfgs_steps(
    start: Array,
    *,
    max_iter: int,
    tol: float,
    max_evaluations: int = 15_000,
    moves: Iterable[Move] = (),
    scaled: bool = False,
) -> Generator[Array, tuple[float, Array], Minimum]:
    """Ask for one evaluation after the other: the steps of SciPy's L-BFGS-B without bounds, but for rounding.

    The points that are yielded are where value and gradient are wanted, which are to be sent; the minimum is returned.
    So several searches can take their evaluations together. The parameters are those of `minimize_lbfgs`.

    Parameters
    ----------
    start : array of any shape
        Where the search begins.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when no entry of the gradient exceeds this.
    max_evaluations : int, default=15000
        Evaluations at most, but for those of the last line search.
    moves : iterable of Move, default=()
        What another search, of a function that is curved alike, remembered in the end; it is used like own moves.
    scaled : bool, default=False
        Whether the curvature is near the identity. The first step is then minus the gradient, else of length one.

    Examples
    --------
    >>> steps = lbfgs_steps(np.array([3.0]), max_iter=1, tol=1e-6)
    >>> next(steps), steps.send((9.0, np.array([6.0])))
    (array([3.]), array([2.]))
    """
    now = _Evaluation(start.copy(), *(yield start.copy()))
    remembered = deque(filter(None, map(_remember, moves)), maxlen=_MEMORY)
    n_evaluations, n_iter = 1, 0
    while n_iter < max_iter and n_evaluations <= max_evaluations and np.abs(now.gradient).max() > tol:
        direction = _direction(remembered, now.gradient)
        if not (remembered or scaled):
            direction /= max(math.sqrt(_dot(direction, direction)), 1 / _LONGEST)  # a first step of length one
        found, taken = yield from _search(now, direction)
        n_evaluations += taken
        if found is None:
            if not remembered:
                break
            remembered.clear()  # what is remembered misleads; begin anew from here
            continue
        move, change = found.point - now.point, found.gradient - now.gradient
        product = _dot(move, change)
        if product > -np.finfo(float).eps * _dot(now.gradient, move):
            remembered.append(_Remembered(move, change, product))
        stuck = found.value >= now.value
        now, n_iter = found, n_iter + 1
        if stuck:
            break
    return Minimum(now.point, n_iter, tuple(Move(each.point, each.gradient) for each in remembered))


class _Evaluation(NamedTuple):
    """A point, and value and gradient there."""

    point: Array
    value: float
    gradient: Array


class _Remembered(NamedTuple):
    """A move, and the product of its changes of point and gradient, which is positive."""

    point: NDArray[np.floating[Any]]
    gradient: NDArray[np.floating[Any]]
    product: float


def _remember(move: Move) -> _Remembered | None:
    """A move of another search, unless the function is not convex along it."""
    product = _dot(move.point, move.gradient)
    return _Remembered(*move, product) if product > _CONVEX * _dot(move.point, move.point) else None


def _direction(moves: deque[_Remembered], gradient: Array) -> Array:
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
    now: _Evaluation, direction: Array
) -> Generator[Array, tuple[float, Array], tuple[_Evaluation | None, int]]:
    """A point along the direction that fulfils the strong Wolfe conditions, and the number of evaluations."""
    slope = _dot(now.gradient, direction)
    if slope >= 0:
        return None, 0
    # Driven by hand: it would call functions of the step, and here value and slope are asked for.
    search: Any = DCSRCH(_never, _never, _DECREASE, _CURVATURE, _STEP_TOLERANCE, 0.0, _LONGEST)
    found, value, derivative, step, task = now, now.value, slope, 1.0, b"START"
    for taken in range(_TRIALS):
        step, value, derivative, task = search._iterate(step, value, derivative, task)
        if task[:2] != b"FG" or not math.isfinite(step):
            return (found if task[:4] == b"CONV" else None), taken
        point = now.point + step * direction
        found = _Evaluation(point, *(yield point))
        value, derivative = found.value, _dot(found.gradient, direction)
    return None, _TRIALS


def _never(step: float) -> float:
    raise AssertionError(f"the step {step} is evaluated by the caller")


def _dot(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float:
    """The sum of products, in an order that depends on the length alone."""
    return float(np.sum(a * b))
