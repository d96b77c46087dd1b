"""L-BFGS on arrays, against SciPy called directly and against a solution in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fmin_l_bfgs_b, rosen, rosen_der
from threadpoolctl import threadpool_limits

from mipl import lbfgs
from mipl.lbfgs import Minimum, Move, lbfgs_steps, minimize_lbfgs


def rosenbrock(point):
    return float(rosen(point.ravel())), rosen_der(point.ravel()).reshape(point.shape)


@pytest.mark.parametrize("max_iter", [3, 20, 500])
def test_the_steps_are_those_of_scipy_in_any_shape(max_iter):
    start = np.array([[-1.2, 1.0], [0.5, 2.0]])
    found = minimize_lbfgs(rosenbrock, start, max_iter=max_iter, tol=1e-3)
    expected, _, details = fmin_l_bfgs_b(rosen, start.ravel(), rosen_der, m=10, factr=0, pgtol=1e-3, maxiter=max_iter)
    np.testing.assert_array_equal(found.point, expected.reshape(2, 2))
    assert found.n_iter == details["nit"] <= max_iter


def test_it_stops_where_no_entry_of_the_gradient_exceeds_the_tolerance():
    found = minimize_lbfgs(rosenbrock, np.zeros(4), max_iter=1000, tol=1e-6)
    assert np.abs(rosen_der(found.point)).max() <= 1e-6
    np.testing.assert_allclose(found.point, 1, atol=1e-5)


def test_the_number_of_evaluations_is_bounded():
    calls = []

    def counted(point):
        calls.append(point)
        return rosenbrock(point)

    minimize_lbfgs(counted, np.zeros(4), max_iter=1000, tol=0.0, max_evaluations=10)
    assert 10 <= len(calls) <= 10 + 20  # the line search of the last iteration is finished


def test_the_start_is_left_as_it_was():
    start = np.array([-1.2, 1.0])
    minimize_lbfgs(rosenbrock, start, max_iter=5, tol=1e-3)
    np.testing.assert_array_equal(start, [-1.2, 1.0])


def logistic(size):
    """A logistic regression whose curvature varies by a thousand, with a ridge."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, size)) * np.geomspace(1, 30, size), rng.choice([-1.0, 1.0], 60)

    def objective(w):
        margin = y * (X @ w)
        value = np.logaddexp(0, -margin).sum() + 0.05 * (w**2).sum()
        return float(value), -X.T @ (y / (1 + np.exp(margin))) + 0.1 * w

    return objective


@pytest.mark.parametrize(("max_iter", "tolerance"), [(1, 1e-12), (5, 1e-9), (15, 1e-6)])
def test_the_steps_for_long_vectors_are_those_of_scipy(max_iter, tolerance, monkeypatch):
    evaluations = []
    for bound in (lbfgs._ONE_THREAD, 0):
        monkeypatch.setattr(lbfgs, "_ONE_THREAD", bound)
        calls = []

        def counted(w, calls=calls):
            calls.append(w)
            return logistic(40)(w)

        evaluations.append((minimize_lbfgs(counted, np.zeros(40), max_iter=max_iter, tol=1e-5), len(calls)))
    (scipy, scipy_calls), (own, own_calls) = evaluations
    np.testing.assert_allclose(own.point, scipy.point, atol=tolerance)
    assert own.n_iter == scipy.n_iter == max_iter
    assert own_calls == scipy_calls


def test_long_vectors_converge_and_the_number_of_threads_of_openblas_changes_no_bit():
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            size = lbfgs._ONE_THREAD + 1
            scales = np.geomspace(1, 100, size)
            found.append(
                minimize_lbfgs(
                    lambda w, scales=scales: (float(np.sum(scales * np.cosh(w - 1))), scales * np.sinh(w - 1)),
                    np.zeros(size),
                    max_iter=200,
                    tol=1e-8,
                ).point
            )
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], 1, atol=1e-6)


CURVATURE = np.geomspace(1, 1000, 6)


def quadratic(w, curvature=CURVATURE):
    return float(0.5 * np.sum(curvature * w**2)), curvature * w


def search(objective, start, **options) -> tuple[Minimum, int]:
    """The minimum, and how many evaluations it took."""
    steps = lbfgs_steps(start, tol=1e-6, **options)
    point, taken = next(steps), 0
    while True:
        taken += 1
        try:
            point = steps.send(objective(point))
        except StopIteration as end:
            return end.value, taken


def test_a_search_goes_on_with_the_moves_that_another_one_remembered():
    rng = np.random.default_rng(0)
    first, alone = search(quadratic, rng.normal(size=6), max_iter=100)
    start = rng.normal(size=6)
    _, without = search(quadratic, start, max_iter=100)
    found, taken = search(quadratic, start, max_iter=100, moves=first.moves)
    np.testing.assert_allclose(found.point, 0, atol=1e-6)
    assert 0 < len(first.moves) <= 10
    assert taken < min(alone, without) / 2


def test_moves_along_which_the_function_is_not_convex_are_not_believed():
    start = np.ones(6)
    expected, _ = search(quadratic, start, max_iter=5)
    found, _ = search(quadratic, start, max_iter=5, moves=[Move(start, -start), Move(start, 0 * start)])
    np.testing.assert_array_equal(found.point, expected.point)


def test_where_the_curvature_is_the_identity_the_first_step_leads_to_the_minimum():
    _, taken = search(lambda w: quadratic(w, 1.0), np.full(6, 40.0), max_iter=100, scaled=True)
    assert taken == 2
