"""A model whose answers can be read off its input: feature c of an instance is the evidence for class c."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.base import MIPLClassifier

__all__ = ["EvidenceModel"]


class EvidenceModel(MIPLClassifier):
    """Instance probabilities are the features divided by their sum with 1; a bag has the largest of its instances."""

    name = "Evidence"

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self.n_fitted_ = len(bags)

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        largest = bags.max(bags.instances)
        return largest / largest.sum(axis=1, keepdims=True)

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        evidence = np.concatenate([bags.instances, np.ones((bags.n_instances, 1), np.float32)], axis=1)
        return evidence / evidence.sum(axis=1, keepdims=True)
