"""Gaussian kernel ridge regression on labelling confidences, the model that SURE and PL-AGGD share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.metrics import euclidean_distances

from mipl.errors import ParameterError
from mipl.pll.base import PLLClassifier

__all__ = ["GaussianRidge", "KernelRidgePLL"]

Array = NDArray[np.float64]


class GaussianRidge:
    r"""Kernel ridge regression with a free bias, factored once for many targets.

    For targets :math:`P` (n, q) and weights :math:`c_i` of the samples, one each as a rule, it minimises
    :math:`\sum_i c_i \|P_i - (KA)_i - b\|^2 + \rho \operatorname{tr} A^\top K A` with

    .. math:: K_{ij} = \exp\left(-\|x_i - x_j\|^2 / (2 s^2)\right).

    With :math:`R = \rho\, \mathrm{diag}(c)^{-1}` the optimum has :math:`(K + R) A + 1b = P` and
    :math:`1^\top A = 0`, so :math:`A = BP` with a symmetric matrix :math:`B` that depends on the samples only, and the
    fitted values are :math:`KA + 1b = P - R A`.

    Parameters
    ----------
    samples : (n, d)
    ridge : float
        :math:`\rho > 0`.
    lengthscale : float or None, default=None
        :math:`s`; None takes the mean Euclidean distance of two samples.
    sample_weight : (n,), default=None
        :math:`c > 0`; None for ones.
    """

    def __init__(
        self,
        samples: Array,
        ridge: float,
        lengthscale: float | None = None,
        sample_weight: Array | None = None,
    ) -> None:
        squared = euclidean_distances(samples, squared=True)
        self.sample_weight = np.ones(len(samples)) if sample_weight is None else sample_weight
        self.lengthscale = _mean_distance(squared, self.sample_weight) if lengthscale is None else lengthscale
        self._ridges = ridge / self.sample_weight
        kernel = _gaussian(squared, self.lengthscale)
        kernel.flat[:: len(kernel) + 1] += self._ridges
        inverse = _inverse_in_place(kernel)
        sums = inverse.sum(axis=1)
        self._bias_row = sums / sums.sum()  # b = bias_row @ P
        inverse -= np.outer(sums, self._bias_row)
        self._solver = inverse

    def solve(self, targets: Array) -> tuple[Array, Array]:
        """Dual coefficients A (n, q) and bias b (q,)."""
        return self._solver @ targets, self._bias_row @ targets

    def fitted(self, targets: Array) -> Array:
        """Fitted values (n, q) at the samples."""
        return targets - self._ridges[:, None] * (self._solver @ targets)

    def leave_one_out(self, targets: Array) -> Array:
        r"""Values (n, q) at each sample of the regression on all others.

        The residual is ``A[i] / B[i, i]``. Of a sample with a weight :math:`c_i > 1` one copy is left out and
        :math:`c_i - 1` stay; its residual is :math:`c_i A_i / (B_{ii} + (c_i - 1) c_i / \rho)`.
        """
        copies = np.maximum(self.sample_weight, 1)
        diagonal = (self._solver.diagonal() + (copies - 1) / self._ridges)[:, None]
        # One sample alone has B = 0 and nothing to be left with; it keeps its target.
        alone = diagonal <= 0
        residual = copies[:, None] * (self._solver @ targets)
        return targets - np.where(alone, 0, residual) / np.where(alone, 1, diagonal)


def _gaussian(squared: Array, lengthscale: float) -> Array:
    """Turn squared distances into kernel values, in place."""
    squared *= -0.5 / lengthscale**2
    return np.exp(squared, out=squared)


def _mean_distance(squared: Array, sample_weight: Array) -> float:
    """Mean distance of two different samples; one for samples that all coincide, where any length scale will do.

    Copies of one sample are different samples at distance zero; a weight below one has no pair with itself.
    """
    count = sample_weight.sum()
    pairs = count**2 - min(count, float(sample_weight @ sample_weight))
    distance = np.sqrt(squared)
    distance *= sample_weight[:, None]
    distance *= sample_weight
    mean = distance.sum() / pairs if pairs > 0 else 0.0
    return float(mean) if mean > 0 else 1.0


def _inverse_in_place(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, in its own memory: a third of the work of a general one."""
    # LAPACK counts in columns, so the transpose, which is the same matrix, needs no copy.
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    inverse: Array = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    upper = np.triu_indices(len(matrix), 1)
    inverse[upper] = inverse.T[upper]
    return inverse


class KernelRidgePLL(PLLClassifier):
    """Base of methods that alternate between labelling confidences and a `GaussianRidge` fitted to them.

    A method implements `_disambiguate` and names its ridge. The scores are least-squares estimates of confidences, not
    probabilities; `predict_proba` is their softmax at a temperature that is fitted without labels: it maximises the
    likelihood of the training candidate sets under the leave-one-out scores. A sample weight multiplies the squared
    loss and the log likelihood of its sample.

    Attributes
    ----------
    confidences_ : (n, q)
        Labelling confidences of the training samples.
    samples_ : (n, d)
        The training samples.
    lengthscale_ : float
        Length scale of the kernel.
    dual_coef_ : (n, q)
        Weights of the training samples in the scores.
    intercept_ : (q,)
        Biases of the scores.
    temperature_ : float
        What scores are divided by before the softmax.
    """

    lengthscale: float | None
    #: Name of the parameter that is the ridge.
    _ridge_parameter: ClassVar[str]

    @abstractmethod
    def _disambiguate(self, Z: Array, candidates: NDArray[np.bool_], model: GaussianRidge) -> Array:
        """Labelling confidences (n, q)."""

    def _fit(self, Z: Array, candidates: NDArray[np.bool_]) -> None:
        self._fit_weighted(Z, candidates, np.ones(len(Z)))

    def _fit_weighted(self, Z: Array, candidates: NDArray[np.bool_], weight: Array) -> None:
        ridge = getattr(self, self._ridge_parameter)
        try:
            model = GaussianRidge(Z, ridge, self.lengthscale, weight)
        except np.linalg.LinAlgError as error:
            raise ParameterError(
                f"{self._ridge_parameter}={ridge} is too small: the kernel matrix cannot be factored; raise it"
            ) from error
        self.confidences_ = self._disambiguate(Z, candidates, model)
        self.samples_, self.lengthscale_ = Z, model.lengthscale
        self.dual_coef_, self.intercept_ = model.solve(self.confidences_)
        self.temperature_ = _fit_temperature(model.leave_one_out(self.confidences_), candidates, weight)

    def _scores(self, Z: Array) -> Array:
        kernel = _gaussian(euclidean_distances(Z, self.samples_, squared=True), self.lengthscale_)
        return kernel @ self.dual_coef_ + self.intercept_

    def _predict_proba(self, Z: Array) -> Array:
        return softmax(self._scores(Z) / self.temperature_, axis=1)


def _fit_temperature(scores: Array, candidates: NDArray[np.bool_], weight: Array) -> float:
    """Temperature between 0.01 and 1 at which softmax(scores) gives the candidate sets the largest likelihood."""

    def loss(log_temperature: float) -> float:
        logits = scores / np.exp(log_temperature)
        inside = logsumexp(np.where(candidates, logits, -np.inf), axis=1)
        return float(np.sum(weight * (logsumexp(logits, axis=1) - inside)))

    return float(np.exp(minimize_scalar(loss, bounds=(np.log(0.01), 0), method="bounded").x))
