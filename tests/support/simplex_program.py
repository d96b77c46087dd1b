"""Minimisation over a simplex by a generic solver, which tests compare with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def solve_row(objective, gradient, support):
    """Minimise over the simplex on `support` (q,) with SLSQP."""
    start = support / support.sum()
    bounds = [(0, 1 if inside else 0) for inside in support]
    total = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}
    return minimize(
        objective, start, jac=gradient, bounds=bounds, constraints=total, options={"ftol": 1e-15, "maxiter": 1000}
    ).x
