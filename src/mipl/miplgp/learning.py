"""Adam on the evidence, and disambiguation after each step: what MIPLGP does with any engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.gp.dirichlet import dirichlet_targets
from mipl.gp.exact import Conditioned, ExactEngine
from mipl.miplgp.disambiguation import DISAMBIGUATIONS, Segments, initial_weights
from mipl.progress import track

if TYPE_CHECKING:
    from mipl.miplgp.estimator import MIPLGP

__all__ = ["ArrayLearner", "Learner", "Step", "learn"]

# Steps over which the loss must stand still for an early stop.
_PATIENCE = 10


class Step(NamedTuple):
    """The loss of a step, and how the solver went, as in `mipl.gp.exact.Evidence`."""

    loss: float
    iterations: int = 0
    residual: float = 0.0


class Learner(Protocol):
    """Gaussian processes on the instances of bags, and the weights of the candidates."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""

    def evidence(self) -> Step:
        """Evaluate the mean negative log evidence."""

    def disambiguate(self) -> None:
        """Compute the weights of the candidates anew, at the parameters of the last evaluation."""

    def condition(self) -> Conditioned:
        """The posterior that prediction uses."""

    def weights(self) -> NDArray[np.float64] | None:
        """The weights (n, C) of the instances; None where they are too many to be kept."""


def learn(learner: Learner, settings: MIPLGP) -> tuple[Conditioned, list[Step]]:
    """Take the steps of Adam, with cosine annealing, and condition on the data in the end."""
    optimizer = torch.optim.Adam(learner.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=settings.max_iter)
    steps: list[Step] = []
    for _ in track(range(settings.max_iter), settings.name, verbose=settings.verbose):
        steps.append(learner.evidence())
        learner.disambiguate()
        optimizer.step()
        schedule.step()
        last = [step.loss for step in steps[-_PATIENCE:]]
        if settings.tol > 0 and len(steps) > _PATIENCE and np.ptp(last) < settings.tol * abs(last[-1]):
            break
    return learner.condition(), steps


class ArrayLearner:
    """Instances in memory, and an engine that sees all of them.

    Parameters
    ----------
    engine : ExactEngine
        The processes.
    bags : Bags
        The training bags.
    candidates : (m, C) bool
        Their candidates.
    disambiguation : str
        A name in `mipl.miplgp.disambiguation.DISAMBIGUATIONS`.
    alpha_eps : float
        Dirichlet parameter of a label without weight.
    """

    def __init__(
        self, engine: ExactEngine, bags: Bags, candidates: NDArray[np.bool_], disambiguation: str, alpha_eps: float
    ) -> None:
        self._engine, self._bags, self._candidates, self._alpha_eps = engine, bags, candidates, alpha_eps
        self._rule = DISAMBIGUATIONS[disambiguation]
        self._weights = initial_weights(bags, candidates)
        self._initial = dirichlet_targets(self._weights, alpha_eps)
        self._targets, self._noise = self._initial
        self._posterior_mean = np.empty(0)

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self._engine.parameters()

    def evidence(self) -> Step:
        """Evaluate the mean negative log evidence."""
        evidence = self._engine.evidence(self._targets, self._noise, warm=True)
        self._posterior_mean = evidence.posterior_mean
        return Step(evidence.loss, evidence.iterations, evidence.residual)

    def disambiguate(self) -> None:
        """Compute the weights of the candidates anew, at the parameters of the last evaluation."""
        if self._rule.step is None:
            return
        prior_mean = self._engine.mean.detach().cpu().numpy()
        if self._rule.reads_posterior:
            self._weights = self._rule.step(prior_mean, self._posterior_mean, self._bags, self._candidates)
            self._targets, noise = dirichlet_targets(self._weights, self._alpha_eps)
        else:  # all instances of a bag have the same weights: computed once per bag, as if it had one instance
            single = Segments(np.arange(len(self._candidates) + 1))
            weights = self._rule.step(prior_mean, np.empty(0), single, self._candidates)
            targets, noises = dirichlet_targets(weights, self._alpha_eps)
            self._weights, self._targets, noise = map(self._bags.spread, (weights, targets, noises))
        if self._rule.updates_noise:
            self._noise = noise

    def condition(self) -> Conditioned:
        """The posterior that prediction uses."""
        given = (self._targets, self._noise) if self._rule.predicts_with_last else self._initial
        return self._engine.condition(*given)

    def weights(self) -> NDArray[np.float64]:
        """The weights (n, C) of the instances."""
        return self._weights
