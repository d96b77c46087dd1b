"""An engine that takes the steps of an optimizer without evaluating all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from mipl.gp.engine import Engine
from mipl.gp.exact import Conditioned, Evidence
from mipl.gp.gradient_path import GradientPath
from mipl.gp.parameters import joined

__all__ = ["ForetoldSteps"]


class ForetoldSteps:
    """Another engine, whose loss and gradients are extrapolated wherever `GradientPath` finds that precise.

    Targets and noises must be functions of the parameters: what else moves them cannot be foretold. The posterior means
    of a step that was not evaluated are those of the last one that was.

    Parameters
    ----------
    engine : Engine
        The engine that evaluates.
    tol : float
        Tolerance of the extrapolation.
    """

    def __init__(self, engine: Engine, tol: float) -> None:
        self._engine, self._path = engine, GradientPath(tol)
        self.kernel, self.mean = engine.kernel, engine.mean
        self._last: Evidence | None = None

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self._engine.parameters()

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """The objective at targets and noise variances (n, C): with `warm`, as a step of an optimizer, or afresh."""
        if not warm:
            return self._engine.evidence(targets, noise)
        foretold = self._path.foretold(joined(self.parameters()))
        if foretold is None:
            out = self._engine.evidence(targets, noise, warm=True)
            loss = torch.tensor([out.loss], dtype=torch.float64, device=self.mean.device)
            self._path.evaluated(torch.cat([loss, joined(p.grad for p in self.parameters() if p.grad is not None)]))
            self._last = out
            return out
        assert self._last is not None
        learned = [parameter for parameter in self.parameters() if parameter.grad is not None]
        gradients = foretold[1:].split([parameter.numel() for parameter in learned])
        for parameter, gradient in zip(learned, gradients, strict=True):
            parameter.grad = gradient.view_as(parameter).to(parameter)
        return self._last._replace(loss=foretold[0].item(), iterations=0)

    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior of the other engine at the present parameters."""
        return self._engine.condition(targets, noise)
