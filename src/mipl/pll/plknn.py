"""PL-kNN: nearest neighbours vote with their candidate sets."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from mipl.compute import seed_of
from mipl.pll.base import PLLClassifier
from mipl.pll.neighbours import nearest_neighbours

__all__ = ["PLkNN"]


class PLkNN(PLLClassifier):
    r"""Weighted voting of the k nearest neighbours' candidate labels.

    With neighbours :math:`N_k(x)` at Euclidean distances :math:`d_j` and candidate indicators :math:`S_{jl}`,

    .. math:: f_l(x) = \sum_{j \in N_k(x)} w_j S_{jl}, \qquad w_j = 1 - d_j / \sum_{j' \in N_k(x)} d_{j'},

    with equal weights where all distances vanish. A training sample of weight :math:`c_j` stands for :math:`c_j`
    neighbours at one place: neighbours are taken, nearest first, until their weights sum to k, the last one with the
    part that is missing. Where parts are below one, :math:`w_j` is cut off at zero. Ties are broken by a random order
    of the classes that is drawn once in `fit`, so predictions do not depend on the order of the samples.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours; fewer are used where there are fewer training samples.
    random_state : int, RandomState or None, default=0
        Seed of the order in which ties are broken.

    Attributes
    ----------
    samples_ : (n, d)
        The training samples.
    candidates_ : (n, q) bool
        Their candidate sets.
    sample_weight_ : (n,) or None
        Their weights; None for ones.
    tie_rank_ : (q,) int
        Of two classes with equally many votes, the one with the larger rank is predicted.

    References
    ----------
    E. Hüllermeier, J. Beringer. Learning from ambiguously labeled examples. Intelligent Data Analysis 10(5), 2006.
    """

    name = "PL-kNN"
    citation = "Hüllermeier & Beringer, Intelligent Data Analysis 2006"
    supports_sample_weight = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, n_neighbors: int = 10, random_state: int | np.random.RandomState | None = 0) -> None:
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def _fit(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_]) -> None:
        self._remember(Z, candidates, None)

    def _fit_weighted(self, Z: NDArray[np.float64], candidates: NDArray[np.bool_], weight: NDArray[np.float64]) -> None:
        self._remember(Z, candidates, weight)

    def _remember(
        self, Z: NDArray[np.float64], candidates: NDArray[np.bool_], weight: NDArray[np.float64] | None
    ) -> None:
        self.samples_ = Z
        self.candidates_ = candidates
        self.sample_weight_ = weight
        self.tie_rank_ = np.random.default_rng(seed_of(self.random_state)).permutation(candidates.shape[1])

    def _predict_proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        count = np.ones(len(self.samples_)) if self.sample_weight_ is None else self.sample_weight_
        # So many samples weigh k together, whichever they are.
        enough = 1 + int(np.searchsorted(np.cumsum(np.sort(count)), self.n_neighbors))
        neighbour = nearest_neighbours(self.samples_, enough, Z)
        weights = count[neighbour]
        taken = np.clip(self.n_neighbors - (np.cumsum(weights, axis=1) - weights), 0, weights)  # (n, k)
        # Recomputed from differences: the search expands the square, which leaves noise where samples coincide.
        distance = np.stack([np.linalg.norm(Z - self.samples_[column], axis=1) for column in neighbour.T], axis=1)
        total = (taken * distance).sum(axis=1, keepdims=True)
        weight = np.where(total > 0, np.maximum(1 - distance / np.where(total > 0, total, 1), 0), 1.0)
        # One neighbour alone has weight 1 - d/d = 0; it still votes.
        weight = np.where((taken * weight).sum(axis=1, keepdims=True) > 0, weight, 1.0)
        votes = np.einsum("nk,nkq->nq", taken * weight, self.candidates_[neighbour].astype(np.float64))
        # A tie-break below every real difference of votes, and far above rounding.
        votes += votes.max(axis=1, keepdims=True) * 1e-9 * (1 + self.tie_rank_) / len(self.tie_rank_)
        proba: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return proba
