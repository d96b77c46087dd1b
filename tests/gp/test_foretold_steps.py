"""Steps of an optimizer of which some are extrapolated, against those that are all evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dense_gp import C, cg_engine, problem

from mipl.gp.foretold_steps import ForetoldSteps


def count_evaluations(engine: Any) -> list[int]:
    """A list that grows with every evaluation of the engine."""
    evaluations: list[int] = []
    evaluate = engine._evaluate
    engine._evaluate = lambda *args, **kwargs: evaluations.append(0) or evaluate(*args, **kwargs)
    return evaluations


def smooth_problem() -> tuple[Any, Any, Any]:
    X, y, noise = problem()
    return X, 3 * np.sin(1.5 * X[:, :C]) - 2 + 0.1 * y, noise


def learned(engine: Any, y: Any, noise: Any, steps: int) -> tuple[Any, list[float]]:
    """Parameters after steps of Adam with cosine annealing, and the losses."""
    optimizer = torch.optim.Adam(engine.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for _ in range(steps):
        losses.append(engine.evidence(y, noise, warm=True).loss)
        optimizer.step()
        schedule.step()
    return torch.cat([p.detach().reshape(-1) for p in engine.parameters()]), losses


def test_they_end_where_evaluated_ones_end() -> None:
    X, y, noise = smooth_problem()
    engine = cg_engine(X)  # whose solves are far more precise, so that differences come from extrapolation
    evaluations = count_evaluations(engine)
    found, losses = learned(ForetoldSteps(engine, 0.01), y, noise, 150)
    expected, expected_losses = learned(cg_engine(X), y, noise, 150)
    assert len(evaluations) < 50
    assert expected.abs().min() > 1, "the parameters have not moved"
    torch.testing.assert_close(found, expected, atol=5e-3, rtol=0)
    np.testing.assert_allclose(losses, expected_losses, atol=1e-3)


def test_what_is_no_step_of_an_optimizer_is_evaluated_and_forgotten() -> None:
    X, y, noise = smooth_problem()
    engine, alone = cg_engine(X), cg_engine(X)
    evaluations = count_evaluations(engine)
    steps = ForetoldSteps(engine, 0.01)
    curves = []
    for evidence in (steps.evidence, alone.evidence):
        curves.append([evidence(y, noise * factor).loss for factor in (1, 1.1, 1.2, 1.3)])
    assert len(evaluations) == 4
    assert curves[0] == curves[1]


def test_an_extrapolated_step_has_the_posterior_means_of_the_last_evaluation() -> None:
    X, y, noise = smooth_problem()
    engine = cg_engine(X)
    evaluations = count_evaluations(engine)
    steps = ForetoldSteps(engine, 1e9)
    out = [steps.evidence(y, noise, warm=True) for _ in range(4)]
    assert len(evaluations) == 3
    np.testing.assert_array_equal(out[3].posterior_mean, out[2].posterior_mean)
    assert out[3].iterations == 0


def test_its_posterior_is_that_of_the_other_engine() -> None:
    X, y, noise = smooth_problem()
    given, alone = (engine.condition(y, noise).posterior for engine in (ForetoldSteps(cg_engine(X), 0.1), cg_engine(X)))
    np.testing.assert_array_equal(given.moments(X[:5], 3), alone.moments(X[:5], 3))
