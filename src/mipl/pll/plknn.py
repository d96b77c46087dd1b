"""PL-kNN: nearest neighbours vote with their candidate sets."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from mipl.pll.base import PLLClassifier
from mipl.pll.embedding import EmbeddedPLL
from mipl.pll.neighbours import nearest_neighbours

__all__ = ["PLkNN", "PLkNNBags"]


class PLkNN(PLLClassifier):
    r"""Weighted voting of the k nearest neighbours' candidate labels.

    With neighbours :math:`N_k(x)` at Euclidean distances :math:`d_j` and candidate indicators :math:`S_{jl}`,

    .. math:: f_l(x) = \sum_{j \in N_k(x)} w_j S_{jl}, \qquad w_j = 1 - d_j / \sum_{j' \in N_k(x)} d_{j'},

    with equal weights where all distances vanish. Ties are broken by a random order of the classes that is drawn once
    in `fit`, so predictions do not depend on the order of the samples.

    Parameters
    ----------
    k : int
        Number of neighbours; fewer are used where there are fewer training samples.
    random_state : int
        Seed of the order in which ties are broken.

    References
    ----------
    E. Hüllermeier, J. Beringer. Learning from ambiguously labeled examples. Intelligent Data Analysis 10(5), 2006.
    """

    citation = "Hüllermeier & Beringer, Intelligent Data Analysis 2006"

    def __init__(self, *, k: int = 10, random_state: int = 0) -> None:
        self.k = k
        self.random_state = random_state

    def _fit(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> None:
        check_scalar(self.k, "k", Integral, min_val=1)
        self.samples_ = Z
        self.candidates_ = candidates
        self.tie_rank_ = np.random.default_rng(self.random_state).permutation(candidates.shape[1])

    def _predict_proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        neighbour = nearest_neighbours(self.samples_, self.k, Z)
        # Recomputed from differences: the search expands the square, which leaves noise where samples coincide.
        distance = np.stack([np.linalg.norm(Z - self.samples_[column], axis=1) for column in neighbour.T], axis=1)
        total = distance.sum(axis=1, keepdims=True)
        weight = np.where(total > 0, 1 - distance / np.where(total > 0, total, 1), 1.0)
        # One neighbour alone has weight 1 - d/d = 0; it still votes.
        weight = np.where(weight.sum(axis=1, keepdims=True) > 0, weight, 1.0)
        votes = np.einsum("nk,nkq->nq", weight, self.candidates_[neighbour].astype(np.float64))
        # A tie-break below every real difference of votes, and far above rounding.
        votes += votes.max(axis=1, keepdims=True) * 1e-9 * (1 + self.tie_rank_) / len(self.tie_rank_)
        return votes / votes.sum(axis=1, keepdims=True)


class PLkNNBags(EmbeddedPLL, learner=PLkNN):
    """PL-kNN on Mean or MaxMin embeddings of bags; see `PLkNN` and `EmbeddedPLL`."""

    name = "PL-kNN"
