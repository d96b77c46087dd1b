r"""The Matérn kernel with :math:`\nu` = 1/2, 3/2 or 5/2.

With :math:`s = \sqrt{2\nu}\, d / \ell` for the distance d and the lengthscale :math:`\ell`,

.. math::
    k_{1/2} = e^{-s}, \qquad k_{3/2} = (1 + s)\, e^{-s}, \qquad k_{5/2} = (1 + s + s^2 / 3)\, e^{-s},

and the derivatives by :math:`\log \ell` are :math:`s\, e^{-s}`, :math:`s^2 e^{-s}` and
:math:`s^2 (1 + s)\, e^{-s} / 3`.

Both functions below compute in units :math:`u = s / \ln 2`, because :math:`e^{-s} = 2^{-u}` and torch's exp2 takes half
the time of its exp. Powers of u only multiply what has decayed, so nothing overflows. Both write into memory that the
caller brings: fresh memory costs as much as the computation. They differ in what they are given. `matern` makes the
fewest passes from the squared distances that a matrix product leaves; `matern_and_derivative` starts from distances
that are kept while the lengthscale changes, and gives the derivative in one pass more.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["NUS", "decay_rate", "matern", "matern_and_derivative"]

#: The smoothness parameters with a closed form.
NUS = (0.5, 1.5, 2.5)
_LN2 = math.log(2.0)


def decay_rate(nu: float, lengthscale: float) -> float:
    r"""The factor :math:`\sqrt{2\nu} / (\ell \ln 2)` that turns a distance d into u."""
    return math.sqrt(2 * nu) / (lengthscale * _LN2)


def matern(squares: Tensor, nu: float, out: Tensor) -> Tensor:
    """Kernel values from squared scaled distances.

    Parameters
    ----------
    squares : (a, b) tensor
        u^2, not negative. It is overwritten.
    nu : {0.5, 1.5, 2.5}
        Smoothness.
    out : (a, b) tensor
        Takes the values.

    Returns
    -------
    (a, b) tensor
        `out`.

    Examples
    --------
    >>> matern(torch.zeros(1, 2), 2.5, torch.empty(1, 2))
    tensor([[1., 1.]])
    """
    u = torch.sqrt(squares, out=out)
    if nu == 0.5:
        return u.neg_().exp2_()
    polynomial = squares.copy_(u) if nu == 1.5 else torch.add(u, squares, alpha=_LN2 / 3, out=squares)
    decay = u.neg_().exp2_()
    return torch.addcmul(decay, decay, polynomial, value=_LN2, out=decay)


def matern_and_derivative(
    distances: Tensor,
    nu: float,
    lengthscale: float,
    outputscale: float,
    out: tuple[Tensor, ...] | None = None,
) -> tuple[Tensor, Tensor]:
    """Kernel values times `outputscale`, and their derivatives by the logarithm of the lengthscale.

    Parameters
    ----------
    distances : (a, b) tensor
        Euclidean distances d, unscaled; they are left as they are.
    nu : {0.5, 1.5, 2.5}
        Smoothness.
    lengthscale, outputscale : float
        Scales of the distances and of the values.
    out : three (a, b) tensors, default=None
        Take values, derivatives and intermediate results; by default new ones are made.

    Returns
    -------
    values, derivatives : (a, b) tensors
    """
    values, derivative, power = out or tuple(torch.empty_like(distances) for _ in range(3))
    torch.mul(distances, -decay_rate(nu, lengthscale), out=power)  # -u
    torch.exp2(power, out=values).mul_(outputscale)
    torch.mul(values, power, out=derivative)  # -u e^-s
    if nu == 0.5:
        return values, derivative.mul_(-_LN2)
    values.sub_(derivative, alpha=_LN2)
    if nu == 1.5:
        return values, derivative.mul_(power.mul_(_LN2**2))
    derivative.mul_(power.mul_(_LN2**2 / 3))  # s^2 e^-s / 3
    return values.add_(derivative), derivative.addcmul_(derivative, power, value=-3 / _LN2)
