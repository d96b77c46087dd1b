"""L-BFGS on arrays, against SciPy called directly and against a solution in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fmin_l_bfgs_b, rosen, rosen_der

from mipl.lbfgs import minimize_lbfgs


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
