"""GM-PLL: disambiguation as a matching of samples to labels on a neighbourhood graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from mipl.candidates import uniform_weights
from mipl.pll.base import PLLClassifier
from mipl.pll.neighbours import nearest_neighbours, neighbour_graph, reconstruction_grams, reconstruction_weights

__all__ = ["GMPLL"]

Array = NDArray[np.float64]


class GMPLL(PLLClassifier):
    r"""Graph matching based partial label learning, re-derived from the published description.

    No public implementation was at hand: the matching problem, its many-to-one constraint and the relaxed matching
    prediction follow the paper's description, the formulas below are this project's.

    Choosing a label for every sample is choosing among the candidate matches :math:`(i, l), l \in S_i`. A matching
    :math:`P` has :math:`p_i` on the candidate simplex: a sample takes one label, a label takes many samples. It
    maximises the affinity of the matches,

    .. math:: F(P) = \nu \sum_{il} a_{il} p_{il} + \tfrac{1}{2} \sum_{ij} W_{ij} \sum_l p_{il} p_{jl},

    where two matches are compatible when neighbours take the same label. :math:`W` is the symmetric part of the graph
    whose rows are the convex weights that reconstruct a sample from its k nearest neighbours (on samples of unit
    length), and :math:`a = WU` for uniform confidences :math:`U` is the support that a match has before any matching.
    From :math:`P = U`, probabilistic matching iterates

    .. math:: p_{il} \leftarrow p_{il} g_{il} / \textstyle\sum_{l'} p_{il'} g_{il'}, \qquad
              g = \nabla F = \nu a + WP,

    normalised for each sample only, which never decreases F (Baum and Eagon, 1967). A new sample is matched with the
    matching of its k neighbours held fixed: its probabilities are :math:`\sum_j w_j p_j` with its own reconstruction
    weights :math:`w`. One vote in k + 1 goes to the shares of the classes in the matching, so that a label which no
    neighbour holds stays possible.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours; fewer are used where there are fewer samples.
    unary_weight : float, default=1.0
        Weight :math:`\nu` of the support of single matches against that of pairs.
    max_iter : int, default=100
        Iterations of the matching at most.
    tol : float, default=1e-3
        Stop when the matching moves by less than this in the Frobenius norm.

    Attributes
    ----------
    confidences_ : (n, q)
        The matching of the training samples.
    samples_ : (n, d)
        The training samples at unit length.
    n_iter_ : int
        Iterations that were made.

    References
    ----------
    G. Lyu, S. Feng, T. Wang, C. Lang, Y. Li. GM-PLL: Graph matching based partial label learning. IEEE Transactions
    on Knowledge and Data Engineering 33(2), 2021.
    """

    name = "GM-PLL"
    citation = "Lyu et al., TKDE 2021"
    _no_sample_weight = "its graph of neighbours has no weights"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "unary_weight": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self, *, n_neighbors: int = 10, unary_weight: float = 1.0, max_iter: int = 100, tol: float = 1e-3
    ) -> None:
        self.n_neighbors = n_neighbors
        self.unary_weight = unary_weight
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, Z: Array, candidates: NDArray[np.bool_]) -> None:
        self.samples_ = normalize(Z)
        index = nearest_neighbours(self.samples_, self.n_neighbors)
        weights = reconstruction_weights(reconstruction_grams(self.samples_, self.samples_, index))
        graph = neighbour_graph(index, weights)
        graph = (graph + graph.T).tocsr() / 2
        matching = uniform_weights(candidates)
        support = self.unary_weight * (graph @ matching)
        for step in range(1, self.max_iter + 1):
            self.n_iter_ = step
            affinity = matching * (support + graph @ matching)
            total = affinity.sum(axis=1, keepdims=True)
            # A sample whose candidates no neighbour shares keeps its matching.
            updated = np.where(total > 0, affinity / np.where(total > 0, total, 1), matching)
            moved = np.linalg.norm(updated - matching)
            matching = updated
            if moved < self.tol:
                break
        self.confidences_ = matching

    def _predict_proba(self, Z: Array) -> Array:
        unit = normalize(Z)
        index = nearest_neighbours(self.samples_, self.n_neighbors, unit)
        weights = reconstruction_weights(reconstruction_grams(unit, self.samples_, index))
        votes = np.einsum("nk,nkq->nq", weights, self.confidences_[index])
        k = index.shape[1]
        proba: Array = (k * votes + self.confidences_.mean(axis=0)) / (k + 1)
        return proba
