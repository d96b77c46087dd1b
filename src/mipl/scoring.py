"""A score of fitted models that needs no true label."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipl.bags import as_bags
from mipl.base import MIPLClassifier
from mipl.candidates import parse_candidates

__all__ = ["label_free_score"]

_FLOOR = 1e-12


def label_free_score(model: MIPLClassifier, bags: Any, candidates: Any) -> float:
    r"""The held-out log likelihood of candidate sets, relative to chance.

    .. math:: \frac1m \sum_b \log \sum_{c \in S_b} \hat p_b(c) - \log \frac{|S_b|}{q}

    Where false candidates are drawn at random, a bag's true label is in its candidate set, and nothing else about the
    set depends on the bag; so the probability that a model gives to the *set* measures how well it knows the label.
    Zero is what equal probabilities score, the mean of :math:`\log(q / |S_b|)` is the best. The bags must not have been
    used in `fit`: it is a scorer for cross-validation (``GridSearchCV(model, grid, scoring=label_free_score)``).

    Parameters
    ----------
    model : MIPLClassifier
        A fitted model.
    bags : Bags, list of (n_i, d) arrays, or 3-D array
        m bags that `model` has not seen.
    candidates : (m, q) bool mask, or m collections of labels

    Returns
    -------
    float
        In nats a bag; larger is better.
    """
    held_out = as_bags(bags)
    mask, _ = parse_candidates(candidates, model.classes_, n_bags=len(held_out))
    in_set = np.sum(model.predict_proba(held_out), axis=1, where=mask, dtype=np.float64)
    return float(np.mean(np.log(np.maximum(in_set, _FLOOR)) - np.log(mask.mean(axis=1))))
