"""Gradients along the path of an optimizer, of which only those that cannot be foretold are evaluated."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["GradientPath"]

# Steps from one evaluation to the next, at most; and by how much they may grow at a time.
LONGEST = 20
GROWTH = 2
# Changes of the parameters whose directions differ by less than this count as one direction.
SAME_DIRECTION = 1e-3


class _Evaluated(NamedTuple):
    """What was evaluated: at which step and parameters, and the values there."""

    step: int
    position: Tensor  # (k,)
    values: Tensor  # (p,)


class GradientPath:
    r"""Values that an optimizer asks for step by step, extrapolated from three evaluations wherever that is precise.

    From the last evaluation at the parameters :math:`\theta_1` to the present :math:`\theta` the values change by as
    much as they did on the ways between the last three: with :math:`\theta - \theta_1 \approx c_1 (\theta_1 - \theta_2)
    + c_2 (\theta_2 - \theta_3)` by least squares, they are :math:`g_1 + c_1 (g_1 - g_2) + c_2 (g_2 - g_3)`.

    Each evaluation is compared with what was foretold there. The error grows as the square of the way, and the next
    evaluation follows after so many steps that it stays near a tolerance. The error of a gradient is relative to the
    root mean square of this gradient over the steps so far: to what Adam divides it by.

    Parameters
    ----------
    tol : float
        The tolerance, of the worst gradient.

    Examples
    --------
    >>> path, evaluations = GradientPath(tol=0.01), []
    >>> for step in range(20):
    ...     if path.foretold(torch.tensor([0.1 * step])) is None:
    ...         evaluations.append(step)
    ...         path.evaluated(torch.tensor([20.0 - step]))
    >>> evaluations
    [0, 1, 2, 4, 8, 16]
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._evaluations: list[_Evaluated] = []  # the last three
        self._squares: Tensor | None = None
        self._step, self._stride = -1, 1
        self._position = torch.empty(0)

    def foretold(self, position: Tensor) -> Tensor | None:
        """Go on to the next step, at parameters (k,): its values (p,), or None where they are to be evaluated."""
        self._step += 1
        self._position = position.double()
        if len(self._evaluations) < 2 or self._step - self._evaluations[-1].step >= self._stride:
            return None
        return self._count(self._extrapolated())

    def evaluated(self, values: Tensor) -> None:
        """Take the values (p,) of the present step, for which `foretold` had nothing."""
        values = self._count(values.double())
        if len(self._evaluations) >= 2:
            assert self._squares is not None
            scale = (self._squares / (self._step + 1)).sqrt().clamp(min=torch.finfo(torch.float64).tiny)
            error = ((self._extrapolated() - values).abs() / scale).max().item()
            way = self._step - self._evaluations[-1].step
            longer = min(math.sqrt(self._tol / error), GROWTH) if error > 0 else GROWTH
            self._stride = min(max(round(way * longer), 1), LONGEST)
        self._evaluations = [*self._evaluations[-2:], _Evaluated(self._step, self._position, values)]

    def _extrapolated(self) -> Tensor:
        last, pairs = self._evaluations[-1], list(zip(self._evaluations[1:], self._evaluations, strict=False))
        ways = torch.stack([new.position - old.position for new, old in pairs], 1)
        changes = torch.stack([new.values - old.values for new, old in pairs], 1)
        shares: Tensor = torch.linalg.pinv(ways, rtol=SAME_DIRECTION) @ (self._position - last.position)
        return last.values + changes @ shares

    def _count(self, values: Tensor) -> Tensor:
        self._squares = values.square() if self._squares is None else self._squares + values.square()
        return values
