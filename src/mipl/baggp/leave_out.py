r"""Exact leave-one-bag-out predictions of a ridge regression.

With :math:`f = U U^\top y` (U are features scaled so that :math:`U U^\top` is the hat matrix), the prediction of bag B
by the model that was fitted without B is

.. math:: f_B^{(-B)} = y_B - (I - U_B U_B^\top)^{-1} (y_B - f_B).

The inverses depend on the features and the noise only: they are formed once, for bags of similar size together, and
applied to any targets. A bag with more instances than features is inverted in feature space (Woodbury).

A bag of weight w in the fit has its rows counted w times in y and in the curvature. Of a weight above one, one bag is
left out and w - 1 stay, as of a bag that is given twice; of a smaller one all. With :math:`\min(w, 1)\, U_B U_B^\top`
in the place of :math:`U_B U_B^\top` the formula is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.baggp.constants import LEAVE_OUT_ENTRIES, LEAVE_OUT_PADDING

__all__ = ["BagLeaveOut"]


class _Batch(NamedTuple):
    """Bags of similar size: their rows (k, s), padded by the row after the last, and the inverses (k, s, s)."""

    rows: Tensor
    inverse: Tensor


class _Long(NamedTuple):
    """A bag longer than the features are many: its rows, U_B and the Cholesky factor of I - U_B' U_B."""

    span: slice
    U: Tensor
    factor: Tensor


class BagLeaveOut:
    r"""The inverses :math:`(I - U_B U_B^\top)^{-1}` of all bags of a block.

    Parameters
    ----------
    features : (n, R)
    scale : (R,)
        U = features * scale.
    offsets : (m + 1,)
    weight : (m,), default=None
        Weights of the bags; None for ones.
    """

    def __init__(self, features: Tensor, scale: Tensor, offsets: Tensor, weight: Tensor | None = None) -> None:
        self._batches: list[_Batch] = []
        self._long: list[_Long] = []
        n, rank = features.shape
        padded = torch.cat([features, features.new_zeros(1, rank)])
        scale = scale.to(features.dtype)
        sizes = offsets.diff()
        root = None if weight is None else weight.clamp(max=1).sqrt().to(features.dtype)
        for bags, size in _batches(sizes, rank):
            within = torch.arange(size, device=features.device)
            rows = torch.where(within < sizes[bags, None], offsets[bags, None] + within, n)
            U = padded[rows].mul_(scale)
            if root is not None:
                U.mul_(root[bags, None, None])
            H = torch.eye(size, dtype=torch.float64, device=features.device) - torch.bmm(U, U.mT).double()
            # Padding rows of U are zero, so their rows of H are those of the identity.
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(H))
            self._batches.append(_Batch(rows, inverse.to(features.dtype)))
        for bag in torch.nonzero(sizes > rank).flatten().tolist():
            span = slice(int(offsets[bag]), int(offsets[bag + 1]))
            U = features[span].double() * (scale if root is None else scale * root[bag])
            factor = torch.linalg.cholesky(torch.eye(rank, dtype=U.dtype, device=U.device) - U.T @ U)
            self._long.append(_Long(span, U, factor))

    def predict(self, targets: Tensor, fitted: Tensor) -> Tensor:
        """Leave-one-bag-out predictions (n, k) from targets (n, k) and the full model's fit (n, k)."""
        residual = targets - fitted
        padded = torch.cat([residual, residual.new_zeros(1, residual.shape[1])])
        solved = torch.empty_like(padded)
        for rows, inverse in self._batches:
            solved[rows] = torch.bmm(inverse, padded[rows])
        for span, U, factor in self._long:
            r = residual[span].double()
            solved[span] = (r + U @ torch.cholesky_solve(U.T @ r, factor)).to(residual.dtype)
        return targets - solved[:-1]


def _batches(sizes: Tensor, rank: int) -> Iterator[tuple[Tensor, int]]:
    """Bags of at most `rank` instances in batches of similar size: their indices, and the padded size."""
    similar = torch.floor(torch.log(sizes.double()) / math.log(LEAVE_OUT_PADDING))
    similar[sizes > rank] = -1
    for group in torch.unique(similar[similar >= 0]):
        bags = torch.nonzero(similar == group).flatten()
        size = int(sizes[bags].max())
        for batch in bags.split(max(1, LEAVE_OUT_ENTRIES // size**2)):
            yield batch, size
