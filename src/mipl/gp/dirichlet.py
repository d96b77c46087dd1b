"""Class weights to regression: the log-normal approximation of a Dirichlet likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["dirichlet_targets"]


def dirichlet_targets(
    weights: NDArray[np.float64], alpha_eps: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Targets and noise variances of class weights (Eqs. 2 and 6 of the MIPLGP paper).

    A Dirichlet sample is a normalised vector of Gamma variables with shapes :math:`\alpha = w + \alpha_\epsilon`; the
    log-normal with the same mean and variance has, in log space,

    .. math:: \sigma^2 = \log(1/\alpha + 1), \qquad y = \log \alpha - \sigma^2 / 2.

    Parameters
    ----------
    weights : (n, C) array
        The weights w of the classes, not negative.
    alpha_eps : float
        :math:`\alpha_\epsilon`, the Dirichlet parameter of a class without weight; positive.

    Returns
    -------
    targets, noise : (n, C) arrays
        y and :math:`\sigma^2`.

    Examples
    --------
    >>> y, noise = dirichlet_targets(np.array([[0.5, 0.0]]), alpha_eps=1e-4)
    >>> y.round(3), noise.round(3)
    (array([[ -1.242, -13.816]]), array([[1.098, 9.21 ]]))
    """
    alpha = weights + alpha_eps
    noise = np.log1p(1 / alpha)
    return np.log(alpha) - noise / 2, noise
