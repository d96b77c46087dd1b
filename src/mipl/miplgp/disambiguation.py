"""The E-steps of MIPLGP: which weight each instance gives to each of its candidate labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from mipl.bag_posterior import bag_evidence, instance_posterior, label_posterior
from mipl.bags import Bags
from mipl.candidates import uniform_weights

__all__ = ["DISAMBIGUATIONS", "Disambiguation", "Segments", "initial_weights"]

Array = NDArray[np.float64]


class Grouped(Protocol):
    """How instances make bags: `mipl.Bags`, or `Segments`."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The bags as segments (m + 1,) of the instances."""

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (m, ...) of bags at their instances (n, ...)."""


class Segments(NamedTuple):
    """Bags of which only the offsets (m + 1,) are known."""

    offsets: NDArray[np.int64]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (m, ...) of bags at their instances (n, ...)."""
        return np.repeat(values, np.diff(self.offsets), axis=0)


#: From prior means (C,), posterior means (n, C), bags and their candidates (m, C) to weights (n, C).
Step = Callable[[Array, Any, Grouped, NDArray[np.bool_]], Array]


def initial_weights(bags: Bags, candidates: NDArray[np.bool_]) -> Array:
    """Equal weights (n, C) on the candidates (m, C) of each instance's bag (Eq. 2)."""
    return bags.spread(uniform_weights(candidates))


def candidate_softmax(scores: Array, candidates: NDArray[np.bool_]) -> Array:
    """Softmax of scores (n, C) over the candidates (n, C) of each row, zero elsewhere.

    >>> candidate_softmax(np.array([[0.0, 9.0, 0.0]]), np.array([[True, False, True]]))
    array([[0.5, 0. , 0.5]])
    """
    return softmax(np.where(candidates, scores, -np.inf), axis=1)


def from_prior(prior: Array, posterior: Array | None, bags: Grouped, candidates: NDArray[np.bool_]) -> Array:
    """Softmax of the constant prior means, as the authors' released code computes it."""
    return bags.spread(candidate_softmax(np.broadcast_to(prior, candidates.shape), candidates))


def from_posterior(prior: Array, posterior: Array, bags: Grouped, candidates: NDArray[np.bool_]) -> Array:
    """Softmax of the posterior mean at each instance (Eq. 3)."""
    return candidate_softmax(posterior, bags.spread(candidates))


def from_bag(prior: Array, posterior: Array, bags: Grouped, candidates: NDArray[np.bool_]) -> Array:
    """The exact posterior of the instances' labels given their bag's candidates (`mipl.bag_posterior`)."""
    logits = torch.tensor(posterior[:, :-1] - posterior[:, -1:])
    offsets = torch.tensor(bags.offsets)
    evidence = bag_evidence(logits, offsets)
    log_prior = torch.tensor(np.where(candidates[:, :-1], 0.0, -np.inf))
    label = label_posterior(evidence.log_evidence, log_prior)
    positive = instance_posterior(logits, evidence, label, offsets).numpy()
    return np.concatenate([positive, np.maximum(1 - positive.sum(axis=1, keepdims=True), 0)], axis=1)


@dataclass(frozen=True)
class Disambiguation:
    """How the weights change from step to step.

    Attributes
    ----------
    step : callable or None
        Gives the new weights (n, C) from prior means (C,), posterior means (n, C), bags and candidates (m, C); None
        keeps the initial weights.
    reads_posterior : bool
        Whether `step` needs the posterior means.
    updates_noise : bool
        Whether the noises follow the weights, as the targets do.
    predicts_with_last : bool
        Whether prediction conditions on the last targets and noises, or on the initial ones.
    """

    step: Step | None
    reads_posterior: bool
    updates_noise: bool
    predicts_with_last: bool


#: The names that `MIPLGP(disambiguation=...)` takes.
DISAMBIGUATIONS = {
    "uniform": Disambiguation(None, reads_posterior=False, updates_noise=False, predicts_with_last=False),
    "released": Disambiguation(from_prior, reads_posterior=False, updates_noise=False, predicts_with_last=False),
    "softmax": Disambiguation(from_posterior, reads_posterior=True, updates_noise=True, predicts_with_last=True),
    "bag": Disambiguation(from_bag, reads_posterior=True, updates_noise=True, predicts_with_last=True),
}
