"""The subset engine: parameters are learned on some of the instances, predictions are conditioned on all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from mipl.gp.conjugate_gradients import ConjugateGradientEngine
from mipl.gp.exact import Conditioned, Evidence, ExactEngine
from mipl.gp.gradient_path import GradientPath
from mipl.gp.landmark_variances import landmark_features
from mipl.gp.parameters import joined

__all__ = ["SubsetEngine"]

# How many times the tolerance of a solve an extrapolated gradient may err. The gradient by the lengthscale is what two
# large parts leave that nearly cancel: a solve moves it by more than that tolerance, and Adam averages it out.
PATH_TOLERANCE = 10


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
        self._learner = build(X[rows], kernel, None if weights is None else weights[rows])
        self.kernel, self.mean = self._learner.kernel, self._learner.mean
        # Nearly as precise as its solves; factors are for those who want all digits.
        self._path: GradientPath | None = None
        if isinstance(self._learner, ConjugateGradientEngine):
            self._path = GradientPath(PATH_TOLERANCE * self._learner.cg_tol)
        self._last: Evidence | None = None

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self._learner.parameters()

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective of the rows to learn from, at targets and noise variances (n, C).

        The other rows have their prior means in `posterior_mean`. With `warm` the call is a step of an optimizer, and
        loss and gradients may be extrapolated, with the posterior means of the last evaluation (see `GradientPath`).
        """
        path = self._path if warm else None
        foretold = None if path is None else path.foretold(joined(self.parameters()))
        if foretold is not None:
            assert self._last is not None
            learned = [parameter for parameter in self.parameters() if parameter.grad is not None]
            gradients = foretold[1:].split([parameter.numel() for parameter in learned])
            for parameter, gradient in zip(learned, gradients, strict=True):
                parameter.grad = gradient.view_as(parameter).to(parameter)
            return self._last._replace(loss=foretold[0].item(), iterations=0)
        out = self._learner.evidence(targets[self._rows], noise[self._rows], warm=warm)
        means = np.tile(self.mean.detach().cpu().numpy(), (len(targets), 1))
        means[self._rows] = out.posterior_mean
        self._last = out._replace(posterior_mean=means)
        if path is not None:
            loss = torch.tensor([out.loss], dtype=torch.float64, device=self.mean.device)
            path.evaluated(torch.cat([loss, joined(p.grad for p in self.parameters() if p.grad is not None)]))
        return self._last

    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior given all targets and noise variances (n, C), at the present parameters."""
        exact = self._learner if np.array_equal(self._rows, np.arange(len(self._X))) else self._all_rows()
        if self._n_landmarks is None:
            return exact.condition(targets, noise)
        rows = torch.tensor(exact.X, dtype=torch.float32, device=exact.device)
        landmarks = landmark_features(exact.kernel, rows, self._n_landmarks, self._seed)
        return exact.condition(targets, noise, landmarks=landmarks)

    def _all_rows(self) -> ExactEngine:
        """An exact engine on all instances, at the present parameters."""
        exact = self._build(self._X, copy.deepcopy(self.kernel), self._weights)
        with torch.no_grad():
            exact.mean.copy_(self._learner.mean)
            exact.raw_noise.copy_(self._learner.raw_noise)
        return exact
