"""Projection onto candidate simplices, and minimisation over them, against a generic solver."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from simplex_program import solve_row

from mipl.pll.simplex import minimize_on_simplices, project_simplex


def random_support(rng, n, q):
    support = rng.random((n, q)) < 0.5
    support[np.arange(n), rng.integers(0, q, n)] = True
    return support


def test_projection_agrees_with_a_quadratic_program():
    rng = np.random.default_rng(0)
    values, support = rng.normal(size=(60, 6)), random_support(rng, 60, 6)
    expected = [
        solve_row(lambda p, v=v: np.sum((p - v) ** 2), lambda p, v=v: 2 * (p - v), s)
        for v, s in zip(values, support, strict=True)
    ]
    np.testing.assert_allclose(project_simplex(values, support), expected, atol=1e-6)


@given(arrays(np.float64, (3, 5), elements=st.floats(-1e6, 1e6)), st.integers(0, 2**31))
def test_projection_lies_on_the_simplex_and_keeps_the_order(values, seed):
    support = random_support(np.random.default_rng(seed), 3, 5)
    projected = project_simplex(values, support)
    assert (projected >= 0).all()
    assert (projected[~support] == 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=1e-9)
    for v, p, s in zip(values, projected, support, strict=True):
        assert (np.diff(p[s][np.argsort(v[s])]) >= 0).all()


@given(st.integers(0, 2**31))
def test_points_of_the_simplex_stay_where_they_are(seed):
    rng = np.random.default_rng(seed)
    support = random_support(rng, 4, 5)
    points = rng.random((4, 5)) * support
    points /= points.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(project_simplex(points, support), points, atol=1e-12)


def test_minimisation_over_coupled_rows_agrees_with_a_generic_solver():
    rng = np.random.default_rng(1)
    n, q = 4, 3
    factor = rng.normal(size=(n, n))
    coupling, target = factor @ factor.T, rng.normal(size=(n, q))
    support = random_support(rng, n, q)

    def objective(flat):
        Y = flat.reshape(n, q)
        return np.trace(Y.T @ coupling @ Y) + np.sum((Y - target) ** 2)

    rows = [{"type": "eq", "fun": lambda flat, i=i: flat.reshape(n, q)[i].sum() - 1} for i in range(n)]
    bounds = [(0, 1 if inside else 0) for inside in support.ravel()]
    start = support / support.sum(axis=1, keepdims=True)
    expected = minimize(objective, start.ravel(), bounds=bounds, constraints=rows, options={"ftol": 1e-14})
    found = minimize_on_simplices(
        lambda Y: 2 * coupling @ Y + 2 * (Y - target), 2 * np.linalg.norm(coupling, 2) + 2, start, support, tol=1e-9
    )
    np.testing.assert_allclose(found, expected.x.reshape(n, q), atol=1e-4)
    assert objective(found.ravel()) <= expected.fun + 1e-9
