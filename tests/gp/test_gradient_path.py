"""Extrapolated gradients against the functions of the step that they come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mipl.gp.gradient_path import LONGEST, GradientPath

STEPS = torch.arange(300.0, dtype=torch.float64)


def position(time: Tensor) -> Tensor:
    """Parameters on a bent path, as an optimizer goes it."""
    return torch.stack([time / 300, (time / 300) ** 2])


def follow(function: Callable[[Tensor], Tensor], tol: float) -> tuple[Tensor, list[int]]:
    """The values (300, p) that an optimizer sees, and the steps that were evaluated."""
    path, seen, evaluated = GradientPath(tol), [], []
    for step, time in enumerate(STEPS):
        values = path.foretold(position(time))
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
    # The error is measured at one stride and foretold for the next: more than the tolerance may come of it.
    assert ((seen - true).abs() <= 3 * tol * scale + 1e-12).all()
    assert len(evaluated) < 250


def test_a_smaller_tolerance_takes_more_evaluations() -> None:
    counts = [len(follow(smooth, tol)[1]) for tol in (0.1, 0.01, 0.001, 0.0001)]
    assert len(STEPS) / LONGEST < counts[0] < counts[1] < counts[2] < counts[3]


def test_what_is_linear_in_the_parameters_is_foretold_although_the_path_is_bent() -> None:
    def linear(time: Tensor) -> Tensor:
        return 2 * position(time) - 1

    seen, evaluated = follow(linear, 0.01)
    torch.testing.assert_close(seen, torch.stack([linear(time) for time in STEPS]), atol=1e-6, rtol=0)
    assert len(evaluated) < 25


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
