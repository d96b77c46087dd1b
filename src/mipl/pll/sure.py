"""SURE: self-guided retraining on labelling confidences that are pushed towards one label."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from mipl.candidates import uniform_weights
from mipl.pll.kernel_ridge import GaussianRidge, KernelRidgePLL
from mipl.pll.simplex import project_simplex

__all__ = ["SURE"]


class SURE(KernelRidgePLL):
    r"""Self-guided retraining with a maximum infinity norm.

    With labelling confidences :math:`p_i` on the candidate simplices and a kernel ridge regression :math:`f`,

    .. math:: \min_{f, P} \sum_i \|p_i - f(x_i)\|^2 - \lambda \sum_i \|p_i\|_\infty + \beta \|f\|_H^2.

    The two blocks are minimised in turn. The regression has a closed form. For the rows let :math:`j` be the candidate
    with the largest score: the row step :math:`\min_p \|p - f(x_i)\|^2 - \lambda p_j`, subject to
    :math:`p_l \le p_j`, is the projection of :math:`f(x_i) + \tfrac{\lambda}{2} e_j` onto the candidate simplex.
    (Completing the square gives the projection without the constraints :math:`p_l \le p_j`; a projection onto a
    simplex keeps the order of its argument, so it meets them.) A sample weight multiplies the terms of its sample in
    both sums, which leaves the row step as it is.

    Parameters
    ----------
    lam : float, default=0.3
        Weight :math:`\lambda` of the infinity norm: how strongly a row commits to one label.
    beta : float, default=0.05
        Ridge :math:`\beta`.
    lengthscale : float or None, default=None
        Length scale of the Gaussian kernel; None takes the mean distance of two training samples.
    max_iter : int, default=100
        Rounds over the two blocks at most.
    tol : float, default=1e-3
        Stop when the confidences move by less than this in the Frobenius norm.

    Attributes
    ----------
    n_iter_ : int
        Rounds that were made.

    References
    ----------
    L. Feng, B. An. Partial label learning with self-guided retraining. AAAI 2019.
    """

    name = "SURE"
    citation = "Feng & An, AAAI 2019"
    supports_sample_weight = True
    _ridge_parameter = "beta"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        lam: float = 0.3,
        beta: float = 0.05,
        lengthscale: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.lengthscale = lengthscale
        self.max_iter = max_iter
        self.tol = tol

    def _disambiguate(
        self, Z: NDArray[np.float64], candidates: NDArray[np.bool_], model: GaussianRidge
    ) -> NDArray[np.float64]:
        confidences = uniform_weights(candidates)
        rows, scale = np.arange(len(Z)), np.sqrt(model.sample_weight)[:, None]
        for step in range(1, self.max_iter + 1):
            self.n_iter_ = step
            scores = model.fitted(confidences)
            scores[rows, np.where(candidates, scores, -np.inf).argmax(axis=1)] += self.lam / 2
            previous, confidences = confidences, project_simplex(scores, candidates)
            if np.linalg.norm(scale * (confidences - previous)) < self.tol:
                break
        return confidences
