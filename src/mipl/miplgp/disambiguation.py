"""The E-steps of MIPLGP: which weight each instance gives to each of its candidate labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from mipl.bag_posterior import bag_evidence, instance_posterior, label_posterior
from mipl.bags import Bags
from mipl.candidates import uniform_weights
from mipl.errors import DataError

__all__ = ["DISAMBIGUATION", "Disambiguation", "disambiguation", "initial_weights"]


def initial_weights(bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Equal weights (n, C) on the candidates (m, C) of each instance's bag (Eq. 2)."""
    return bags.spread(uniform_weights(candidates))


def candidate_softmax(scores: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Softmax of `scores` over the candidates of each row, zero beside them.

    >>> candidate_softmax(np.array([[0.0, 9.0, 0.0]]), np.array([[True, False, True]]))
    array([[0.5, 0. , 0.5]])
    """
    return softmax(np.where(candidates, scores, -np.inf), axis=1)


def _from_prior(
    prior: NDArray[Any], posterior: NDArray[Any], bags: Bags, candidates: NDArray[np.bool_]
) -> NDArray[Any]:
    return bags.spread(candidate_softmax(np.broadcast_to(prior, candidates.shape), candidates))


def _from_posterior(
    prior: NDArray[Any], posterior: NDArray[Any], bags: Bags, candidates: NDArray[np.bool_]
) -> NDArray[Any]:
    return candidate_softmax(posterior, bags.spread(candidates))


def _from_bag(prior: NDArray[Any], posterior: NDArray[Any], bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[Any]:
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
    step : callable, or None to keep the initial weights
        ``step(prior_mean (C,), posterior_mean (n, C), bags, candidates (m, C))`` gives the new weights (n, C).
    updates_noise : bool
        Whether the noises follow the weights, as the targets do.
    predicts_with_last : bool
        Whether prediction conditions on the last targets and noises, or on the initial ones.
    """

    step: Callable[..., NDArray[np.float64]] | None
    updates_noise: bool
    predicts_with_last: bool


#: The names that `MIPLGP(disambiguation=...)` takes.
DISAMBIGUATION = {
    "uniform": Disambiguation(None, updates_noise=False, predicts_with_last=False),
    "released": Disambiguation(_from_prior, updates_noise=False, predicts_with_last=False),
    "softmax": Disambiguation(_from_posterior, updates_noise=True, predicts_with_last=True),
    "bag": Disambiguation(_from_bag, updates_noise=True, predicts_with_last=True),
}


def disambiguation(name: str) -> Disambiguation:
    """Look up an E-step by its name."""
    if name not in DISAMBIGUATION:
        raise DataError(f"unknown disambiguation {name!r}; use one of {', '.join(map(repr, DISAMBIGUATION))}")
    return DISAMBIGUATION[name]
