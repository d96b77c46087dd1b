"""SURE: its row step against a generic solver, and its objective."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from mipl.pll import SURE
from mipl.pll.simplex import project_simplex


def test_sure_row_step_is_a_projection(random_candidates):
    """The published row random_candidates, with its constraints p_l <= p_j, by a generic solver."""
    _, candidates = random_candidates
    rng = np.random.default_rng(1)
    lam = 0.3
    for scores, support in zip(rng.normal(0.3, 0.4, size=(30, 5)), candidates, strict=True):
        j = np.where(support, scores, -np.inf).argmax()
        solved = minimize(
            lambda p, f=scores, j=j: np.sum((p - f) ** 2) - lam * p[j],
            support / support.sum(),
            bounds=[(0, 1 if inside else 0) for inside in support],
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "ineq", "fun": lambda p, j=j: p[j] - np.delete(p, j)},
            ],
            options={"ftol": 1e-14},
        )
        projected = project_simplex((scores + lam / 2 * (np.arange(5) == j))[None], support[None])[0]
        np.testing.assert_allclose(projected, solved.x, atol=1e-5)


def test_sure_never_raises_its_objective(random_candidates):
    samples, candidates = random_candidates
    kernel = np.exp(-(squareform(pdist(samples)) ** 2) / (2 * pdist(samples).mean() ** 2))

    def objective(steps):
        model = SURE(max_iter=steps, tol=0).fit(samples, candidates)
        P, A = model.confidences_, model.dual_coef_
        residual = P - kernel @ A - model.intercept_
        return np.sum(residual**2) - model.lam * P.max(axis=1).sum() + model.beta * np.trace(A.T @ kernel @ A)

    values = [objective(steps) for steps in range(1, 12)]
    assert (np.diff(values) <= 1e-10).all()
    assert values[-1] < values[0] - 0.1
