r"""Instances that occur several times: one row of the kernel matrix serves all occurrences, without approximation.

Rows :math:`i \in u` with one instance observe the same latent value, :math:`y_i = f_u + \varepsilon_i` with noises
:math:`d_i`. For all that is asked of f they are one observation, of precision and residual

.. math:: \bar w_u = \sum_{i \in u} 1 / d_i, \qquad
          \bar r_u = \frac{1}{\bar w_u} \sum_{i \in u} r_i / d_i, \qquad \bar d_u = 1 / \bar w_u .

With :math:`\bar A = K_u + \mathrm{diag}(\bar d)`, K_u over distinct instances, and :math:`\bar a = \bar A^{-1} \bar r`,

.. math:: \log |A| &= \log |\bar A| + \sum_i \log d_i + \sum_u \log \bar w_u, \\
          r^\top A^{-1} r &= \bar r^\top \bar a + \sum_i r_i^2 / d_i - \sum_u \bar w_u \bar r_u^2, \\
          a_i &= (r_i - \bar r_u + \bar d_u \bar a_u) / d_i, \\
          (A^{-1})_{ii} &= 1 / d_i - (\bar d_u - \bar d_u^2 (\bar A^{-1})_{uu}) / d_i^2 .

Bags that share instances, as those of Birdsong and Newsgroups do, thus cost the square of the distinct instances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Merged", "Repeats", "expand", "find_repeats", "merge"]

# Rows are merged where at most this share of them is distinct: fewer repeats gain nothing.
MOST_DISTINCT = 0.9


class Repeats(NamedTuple):
    """Which rows are equal.

    Attributes
    ----------
    first : (u,) array of int
        The first row of each distinct instance, ascending.
    distinct : (n,) array of int
        The distinct instance of each row.
    """

    first: NDArray[np.int64]
    distinct: NDArray[np.int64]


class Merged(NamedTuple):
    """One observation per distinct instance, in place of several; all tensors in double precision.

    Attributes
    ----------
    residual : (C, u) tensor
        The means of the residuals, weighted by precision.
    noise : (C, u) tensor
        Their noise variances.
    constant : float
        What merging takes from the objective (log determinants and quadratic forms, summed over classes).
    """

    residual: Tensor
    noise: Tensor
    constant: float


def find_repeats(X: NDArray[np.floating]) -> Repeats | None:
    """Find equal rows of X (n, d); None where more than nine in ten are distinct.

    >>> find_repeats(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0]]))
    Repeats(first=array([0, 1]), distinct=array([0, 1, 0]))
    """
    rows = np.ascontiguousarray(X) + 0.0  # so that the bytes of -0 are those of 0
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) > MOST_DISTINCT * len(X):
        return None
    order = np.argsort(first)
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    return Repeats(first[order], position[inverse])


def merge(repeats: Repeats, residual: Tensor, noise: Tensor) -> Merged:
    """Merge residuals and total noises (C, n) of equal rows, both in double precision."""
    precision = _sums(repeats, 1 / noise)
    mean = _sums(repeats, residual / noise) / precision
    logs = noise.log().sum() + precision.log().sum()
    forms = (residual.square() / noise).sum() - (precision * mean.square()).sum()
    return Merged(mean, 1 / precision, (logs + forms).item())


def expand(
    repeats: Repeats, merged: Merged, residual: Tensor, noise: Tensor, solution: Tensor, by_noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Solutions, and the objective's derivatives by the noises, of all rows (C, n), from those of distinct ones.

    Parameters
    ----------
    repeats : Repeats
        Which rows are equal.
    merged : Merged
        What `merge` made of them.
    residual, noise : (C, n) tensors
        Residuals and total noises of all rows.
    solution, by_noise : (C, u) tensors
        Solutions and derivatives of the distinct instances.
    """
    fitted = merged.residual - merged.noise * solution
    variance = merged.noise - merged.noise.square() * (by_noise + solution.square())
    every = (residual - fitted[:, repeats.distinct]) / noise
    return every, 1 / noise - variance[:, repeats.distinct] / noise.square() - every.square()


def _sums(repeats: Repeats, values: Tensor) -> Tensor:
    """Sums (C, u) of values (C, n) over equal rows."""
    out = torch.zeros(len(values), len(repeats.first), dtype=values.dtype, device=values.device)
    return out.index_add_(1, torch.tensor(repeats.distinct, device=values.device), values)
