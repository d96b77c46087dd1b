"""Extrapolated gradients against the functions of the step that they come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mipl.gp.gradient_path import LONGEST, GradientPath

STEPS = torch.arange(300.0, dtype=torch.float64)


def follow(function: Callable[[Tensor], Tensor], tol: float) -> tuple[Tensor, list[int]]:
    """The values (300, p) that an optimizer sees, and the steps that were evaluated."""
    path, seen, evaluated = GradientPath(tol), [], []
    for step, time in enumerate(STEPS):
        values = path.foretold()
        if values is None:
            values = function(time)
            path.evaluated(values)
            evaluated.append(step)
        seen.append(values)
    return torch.stack(seen), evaluated


def smooth(time: Tensor) -> Tensor:
    return torch.stack([torch.exp(-time / 60), 1e-4 * torch.cos(time / 50), torch.zeros(()).double()])


@pytest.mark.parametrize("tol", [0.1, 0.01, 0.001])
def test_a_smooth_path_is_followed_within_the_tolerance(tol: float) -> None:
    true = torch.stack([smooth(time) for time in STEPS])
    seen, evaluated = follow(smooth, tol)
    scale = true.square().cumsum(0).div(STEPS[:, None] + 1).sqrt()
    # Curvature is measured at one stride and used for the next: a little more than the tolerance may come of it.
    assert ((seen - true).abs() <= 1.5 * tol * scale + 1e-12).all()
    assert len(evaluated) < 250


def test_a_smaller_tolerance_takes_more_evaluations() -> None:
    counts = [len(follow(smooth, tol)[1]) for tol in (0.1, 0.01, 0.001)]
    assert len(STEPS) / LONGEST < counts[0] < counts[1] < counts[2]


def test_a_path_without_a_direction_is_evaluated_in_every_step() -> None:
    noise = torch.randn(len(STEPS), 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen, evaluated = follow(lambda time: noise[int(time)], 0.01)
    assert evaluated == list(range(len(STEPS)))
    torch.testing.assert_close(seen, noise)


def test_a_jump_is_followed_by_an_evaluation_in_every_step() -> None:
    """Fresh probes move all gradients at once, which no line foretells."""
    _, evaluated = follow(lambda time: smooth(time) + (time >= 150) * 0.1, 0.01)
    after = next(step for step in evaluated if step >= 150)
    assert after < 150 + LONGEST
    assert {after + 1, after + 2} <= set(evaluated)
