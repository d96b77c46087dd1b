"""The subset engine: parameters are learned on some of the instances, predictions are conditioned on all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from mipl.gp.exact import Conditioned, Evidence, ExactEngine
from mipl.gp.landmark_variances import landmark_features

__all__ = ["SubsetEngine"]


class SubsetEngine:
    """The evidence of some instances, and the posterior given all of them at the parameters so learned.

    Few parameters are learned, which some thousand instances determine well enough, in many evaluations; what a
    prediction remembers of single instances matters more, and takes one solve. Landmarks are the other way round: they
    learn from all instances and remember none. Variances cost the most and matter the least: they come from landmarks
    that are conditioned on all instances (`mipl.gp.landmark_variances`).

    Parameters
    ----------
    build : callable
        Gives an exact engine, from instances (k, d), a kernel, and how often each instance counts (k,) or None.
    X : (n, d) array
        The training instances.
    kernel : gpytorch.kernels.Kernel
        Becomes part of the engine that learns.
    rows : (k,) array of int
        The instances to learn from.
    weights : (n,) array, default=None
        How often each instance counts; None for once.
    n_landmarks : int or None, default=None
        Landmarks of the variances; None takes those of the exact engine.
    seed : int, default=0
        Seed of the landmarks.

    Attributes
    ----------
    learner : ExactEngine
        The engine that learns.
    """

    def __init__(
        self,
        build: Callable[[NDArray[np.floating], Kernel, NDArray[np.float64] | None], ExactEngine],
        X: NDArray[np.floating],
        kernel: Kernel,
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None = None,
        n_landmarks: int | None = None,
        seed: int = 0,
    ) -> None:
        self._build, self._X, self._rows, self._weights = build, X, rows, weights
        self._n_landmarks, self._seed = n_landmarks, seed
        self.learner = build(X[rows], kernel, None if weights is None else weights[rows])
        self.kernel, self.mean = self.learner.kernel, self.learner.mean

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self.learner.parameters()

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective of the rows to learn from, at targets and noise variances (n, C).

        The other rows have their prior means in `posterior_mean`.
        """
        out = self.learner.evidence(targets[self._rows], noise[self._rows], warm=warm)
        means = np.tile(self.mean.detach().cpu().numpy(), (len(targets), 1))
        means[self._rows] = out.posterior_mean
        return out._replace(posterior_mean=means)

    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior given all targets and noise variances (n, C), at the present parameters."""
        exact = self.learner if np.array_equal(self._rows, np.arange(len(self._X))) else self._all_rows()
        if self._n_landmarks is None:
            return exact.condition(targets, noise)
        rows = torch.tensor(exact.X, dtype=torch.float32, device=exact.device)
        landmarks = landmark_features(exact.kernel, rows, self._n_landmarks, self._seed)
        return exact.condition(targets, noise, landmarks=landmarks)

    def _all_rows(self) -> ExactEngine:
        """An exact engine on all instances, at the present parameters."""
        exact = self._build(self._X, copy.deepcopy(self.kernel), self._weights)
        with torch.no_grad():
            exact.mean.copy_(self.learner.mean)
            exact.raw_noise.copy_(self.learner.raw_noise)
        return exact
