"""GM-PLL: disambiguation as a matching of samples to labels on a neighbourhood graph."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import check_scalar

from mipl.candidates import uniform_weights
from mipl.pll.base import PLLClassifier
from mipl.pll.embedding import EmbeddedPLL
from mipl.pll.neighbours import nearest_neighbours, neighbour_graph, reconstruction_grams, reconstruction_weights

__all__ = ["GMPLL", "GMPLLBags"]

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
    k : int
        Number of neighbours; fewer are used where there are fewer samples.
    nu : float
        Weight :math:`\nu` of the support of single matches against that of pairs.
    max_iter : int
    tol : float
        Stop when the matching moves by less than this in the Frobenius norm.

    Attributes
    ----------
    confidences_ : (n, q) the matching of the training samples
    samples_ : (n, d) at unit length
    n_iter_ : int

    References
    ----------
    G. Lyu, S. Feng, T. Wang, C. Lang, Y. Li. GM-PLL: Graph matching based partial label learning. IEEE Transactions
    on Knowledge and Data Engineering 33(2), 2021.
    """

    citation = "Lyu et al., TKDE 2021"

    def __init__(self, *, k: int = 10, nu: float = 1.0, max_iter: int = 100, tol: float = 1e-3) -> None:
        self.k = k
        self.nu = nu
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, Z: Array, candidates: NDArray[np.bool_]) -> None:
        for name in ("k", "max_iter"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(self.nu, "nu", Real, min_val=0)
        self.samples_ = normalize(Z)
        index = nearest_neighbours(self.samples_, self.k)
        weights = reconstruction_weights(reconstruction_grams(self.samples_, self.samples_, index))
        graph = neighbour_graph(index, weights)
        graph = (graph + graph.T).tocsr() / 2
        matching = uniform_weights(candidates)
        support = self.nu * (graph @ matching)
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
        index = nearest_neighbours(self.samples_, self.k, unit)
        weights = reconstruction_weights(reconstruction_grams(unit, self.samples_, index))
        votes = np.einsum("nk,nkq->nq", weights, self.confidences_[index])
        k = index.shape[1]
        return (k * votes + self.confidences_.mean(axis=0)) / (k + 1)


class GMPLLBags(EmbeddedPLL, learner=GMPLL):
    """GM-PLL on Mean or MaxMin embeddings of bags; see `GMPLL` and `EmbeddedPLL`."""

    name = "GM-PLL"
