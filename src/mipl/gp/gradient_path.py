"""Gradients along the path of an optimizer, of which only those that cannot be foretold are evaluated."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["GradientPath"]

# Steps from one evaluation to the next, at most; and by how much they may grow at a time.
LONGEST = 10
GROWTH = 2


class GradientPath:
    r"""Values that an optimizer asks for step by step, extrapolated from two evaluations wherever that is precise.

    With the last evaluations at the steps :math:`t_2 < t_1`, :math:`j = t_1 - t_2`, a straight line through both errs
    at :math:`t_1 + k` by nearly :math:`c\, k (k + j)`, with half the second derivative c. Each evaluation is compared
    with what the line foretold there, which gives c, and the next one follows after so many steps that the error stays
    below a tolerance. The error of a gradient is relative to the root mean square of this gradient over the steps so
    far: to what Adam divides it by.

    Parameters
    ----------
    tol : float
        The tolerance, of the worst gradient.

    Examples
    --------
    >>> path, evaluations = GradientPath(tol=0.01), []
    >>> for step in range(20):
    ...     if path.foretold() is None:
    ...         evaluations.append(step)
    ...         path.evaluated(torch.tensor([20.0 - step]))
    >>> evaluations
    [0, 1, 2, 4, 8, 16]
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._evaluations: list[tuple[int, Tensor]] = []  # the last two
        self._squares: Tensor | None = None
        self._step, self._stride, self._curvature = -1, 1, 0.0

    def foretold(self) -> Tensor | None:
        """Go on to the next step: its values (p,), or None where they are to be evaluated."""
        self._step += 1
        if len(self._evaluations) < 2 or self._step - self._evaluations[-1][0] >= self._stride:
            return None
        return self._count(self._line())

    def evaluated(self, values: Tensor) -> None:
        """Take the values (p,) of the present step, for which `foretold` had nothing."""
        values = self._count(values.double())
        if len(self._evaluations) == 2:
            (before, _), (last, _) = self._evaluations
            k, j = self._step - last, last - before
            assert self._squares is not None
            scale = (self._squares / (self._step + 1)).sqrt()
            error = ((self._line() - values).abs() / scale.clamp(min=torch.finfo(scale.dtype).tiny)).max().item()
            # The larger of two: a gradient without curvature at one place is no straight line.
            curvature, self._curvature = max(error / (k * (k + j)), self._curvature), error / (k * (k + j))
            allowed = self._tol / max(curvature, 1e-12)  # of k' (k' + k), k' being the next stride
            self._stride = min(max(int((math.sqrt(k * k + 4 * allowed) - k) / 2), 1), GROWTH * k, LONGEST)
        self._evaluations = [*self._evaluations[-1:], (self._step, values)]

    def _line(self) -> Tensor:
        (before, older), (last, newer) = self._evaluations
        return newer + (newer - older) * ((self._step - last) / (last - before))

    def _count(self, values: Tensor) -> Tensor:
        self._squares = values.square() if self._squares is None else self._squares + values.square()
        return values
