"""PL-AGGD: a graph, labelling confidences and a classifier that shape each other."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import eye_array
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from mipl.candidates import uniform_weights
from mipl.pll.kernel_ridge import GaussianRidge, KernelRidgePLL
from mipl.pll.neighbours import nearest_neighbours, neighbour_graph, reconstruction_grams, reconstruction_weights
from mipl.pll.simplex import minimize_on_simplices

__all__ = ["PLAGGD", "graph_confidences"]

Array = NDArray[np.float64]


def graph_confidences(
    index: NDArray[np.int64],
    weights: Array,
    candidates: NDArray[np.bool_],
    start: Array,
    *,
    scores: Array | None = None,
    mu: float = 1.0,
    tol: float = 1e-6,
) -> Array:
    """Minimise ``||Y - W Y||^2 + ||Y - F||^2 / mu`` over candidate simplices, without the second term if F is None.

    W is the (n, n) graph with the weights (n, k) at the neighbours `index` (n, k), and F the scores (n, q).
    """
    residual = (eye_array(len(index), format="csr") - neighbour_graph(index, weights)).tocsr()
    transposed = residual.T.tocsr()
    pull = 0.0 if scores is None else 1 / mu
    target = start if scores is None else scores
    # The product of the largest row sum and the largest column sum bounds the squared spectral norm.
    size = abs(residual)
    curvature = 2 * (float(size.sum(axis=1).max()) * float(size.sum(axis=0).max()) + pull)
    return minimize_on_simplices(
        lambda Y: 2 * (transposed @ (residual @ Y)) + 2 * pull * (Y - target), curvature, start, candidates, tol=tol
    )


class PLAGGD(KernelRidgePLL):
    r"""Adaptive graph guided disambiguation.

    With a graph :math:`W` whose rows are convex weights on the k nearest neighbours, labelling confidences :math:`Y`
    on the candidate simplices and a kernel ridge regression :math:`f`,

    .. math:: \min_{f, W, Y} \sum_i \|f(x_i) - y_i\|^2 + \gamma \|f\|_H^2
              + \lambda \|X - WX\|_F^2 + \mu \|Y - WY\|_F^2.

    The blocks are minimised in turn: f in closed form, each row of W as a quadratic program on a simplex of k
    entries, and :math:`Y` as the minimiser of :math:`\|Y - WY\|_F^2 + \|Y - F\|_F^2 / \mu` by accelerated projected
    gradient. At the start W reconstructs the samples alone, and Y follows from W. Neighbours and
    reconstruction use samples of unit length, the kernel uses the samples as they are. As in the authors' code, f has
    a bias that the paper does not write.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours; fewer are used where there are fewer other samples.
    lam : float, default=1.0
        Weight :math:`\lambda` of the graph's fit to the samples.
    mu : float, default=1.0
        Weight :math:`\mu` of the graph's fit to the confidences.
    gamma : float, default=0.05
        Ridge :math:`\gamma`.
    lengthscale : float or None, default=None
        Length scale of the Gaussian kernel; None takes the mean distance of two training samples.
    max_iter : int, default=10
        Rounds over the three blocks.

    References
    ----------
    D.-B. Wang, L. Li, M.-L. Zhang. Adaptive graph guided disambiguation for partial label learning. KDD 2019;
    extended in IEEE Transactions on Pattern Analysis and Machine Intelligence 44(12), 2022.
    """

    name = "PL-AGGD"
    citation = "Wang, Li & Zhang, KDD 2019"
    _no_sample_weight = "its graph of neighbours has no weights"
    _ridge_parameter = "gamma"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "lam": [Interval(Real, 0, None, closed="left")],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        lam: float = 1.0,
        mu: float = 1.0,
        gamma: float = 0.05,
        lengthscale: float | None = None,
        max_iter: int = 10,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.lam = lam
        self.mu = mu
        self.gamma = gamma
        self.lengthscale = lengthscale
        self.max_iter = max_iter

    def _disambiguate(self, Z: Array, candidates: NDArray[np.bool_], model: GaussianRidge) -> Array:
        unit = normalize(Z)
        index = nearest_neighbours(unit, self.n_neighbors)
        confidences = uniform_weights(candidates)
        if index.shape[1] == 0:
            return confidences
        sample_grams = reconstruction_grams(unit, unit, index)
        weights = reconstruction_weights(sample_grams)
        confidences = graph_confidences(index, weights, candidates, confidences)
        for _ in range(self.max_iter):
            scores = model.fitted(confidences)
            grams = self.lam * sample_grams + self.mu * reconstruction_grams(confidences, confidences, index)
            weights = reconstruction_weights(grams)
            confidences = graph_confidences(index, weights, candidates, confidences, scores=scores, mu=self.mu)
        return confidences
