"""The hybrid engine: parameters are learned on landmarks, predictions are conditioned on all instances."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from mipl.gp.exact import Conditioned, Evidence, ExactEngine
from mipl.gp.low_rank import LowRankEngine

__all__ = ["HybridEngine"]


class HybridEngine:
    """Evidence and gradient of a low-rank engine, and the posterior of an exact one at the parameters so learned.

    A posterior on M landmarks forgets single instances, which costs accuracy where these recur or lie close together;
    the parameters that landmarks lead to cost little. Learning takes many evaluations and conditioning one, so this
    has most of the speed of the one and most of the accuracy of the other. Its memory is that of the exact engine.

    Parameters
    ----------
    low_rank : LowRankEngine
        Learns.
    build_exact : callable
        Gives an exact engine on all instances, from a kernel.
    """

    def __init__(self, low_rank: LowRankEngine, build_exact: Callable[[Kernel], ExactEngine]) -> None:
        self._low_rank, self._build_exact = low_rank, build_exact
        self.kernel, self.mean = low_rank.kernel, low_rank.mean

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self._low_rank.parameters()

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective of the low-rank engine at targets and noise variances (n, C)."""
        return self._low_rank.evidence(targets, noise, warm=warm)

    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The exact posterior given targets and noise variances (n, C), at the present parameters."""
        exact = self._build_exact(copy.deepcopy(self.kernel))
        with torch.no_grad():
            exact.mean.copy_(self._low_rank.mean)
            exact.raw_noise.copy_(self._low_rank.raw_noise)
        return exact.condition(targets, noise)
