r"""Exact leave-one-bag-out predictions of a ridge regression.

With :math:`f = U U^\top y` (U are features scaled so that :math:`U U^\top` is the hat matrix), the prediction of bag B
by the model that was fitted without B is

.. math:: f_B^{(-B)} = y_B - (I - U_B U_B^\top)^{-1} (y_B - f_B).

The inverses depend on the features and the noise only: they are formed once, for bags of similar size together, and
applied to any targets. A bag with more instances than features is inverted in feature space (Woodbury): a long bag
costs memory and time as its features do, not as a matrix between all pairs of its instances would.

A bag of weight w in the fit has its rows counted w times in y and in the curvature. Of a weight above one, one bag is
left out and w - 1 stay, as of a bag that is given twice; of a smaller one all. With :math:`\min(w, 1)\, U_B U_B^\top`
in the place of :math:`U_B U_B^\top` the formula is the same.

Where the Gram matrix G of all bags is diagonal and a fit keeps only some of the bags, the matrix of the kept ones other
than B is taken to be the same share s of :math:`G - G_B` for all B. With the noise :math:`\sigma^2` and
:math:`K = \Phi_B (s G + \sigma^2 I)^{-1} \Phi_B^\top` the inverse above becomes :math:`(I - s K)^{-1} (I + (1 - s) K)`,
which exists whatever the features are, and no feature has to be multiplied by a matrix. Fits that keep equally many
bags, whichever these are, share it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.baggp.blocks import Block
from mipl.baggp.constants import LEAVE_OUT_PADDING, LEAVE_OUT_ROWS
from mipl.baggp.low_rank import Ridge, symmetric, upper_gram

__all__ = ["BagLeaveOut", "leave_out_factors"]


class _Batch(NamedTuple):
    """Bags of similar size: their rows (k, s), padded by the row after the last, and the inverses (k, s, s)."""

    rows: Tensor
    inverse: Tensor


class _Long(NamedTuple):
    """A bag longer than the features are many: its rows, and the inverse (R, R) of the others' Gram plus noise."""

    span: slice
    inverse: Tensor


class BagLeaveOut(NamedTuple):
    r"""The inverses :math:`(I - U_B U_B^\top)^{-1}` of all bags of a block."""

    batches: list[_Batch]
    long: list[_Long]

    def predict(self, features: Tensor, targets: Tensor, fitted: Tensor) -> Tensor:
        """Leave-one-bag-out predictions (n, k) from features (n, R), targets (n, k) and the full model's fit (n, k)."""
        residual = targets - fitted
        padded = torch.cat([residual, residual.new_zeros(1, residual.shape[1])])
        solved = torch.empty_like(padded)
        for rows, inverse in self.batches:
            solved[rows] = torch.bmm(inverse, padded[rows])
        for span, inverse in self.long:
            r = residual[span]
            # Not features.T @ r: BLAS takes twenty times as long for that shape.
            inner = inverse @ (r.T @ features[span]).T.double()
            solved[span] = r + features[span] @ inner.to(r.dtype)
        return targets - solved[:-1]


def leave_out_factors(block: Block, ridge: Ridge, share: float = 1.0) -> BagLeaveOut:
    """The inverses of a block; the ridge is that of all blocks, or of the `share` of them that a fit keeps."""
    features, offsets = block.features, block.offsets
    n, rank = features.shape
    sizes = offsets.diff()
    root = None if block.weight is None else block.weight.clamp(max=1).sqrt().to(features.dtype)
    chosen = list(_batches(sizes, rank))
    # What stays is allocated before what does not: small pieces that stay between large ones that are freed keep the
    # process from using their memory again, which came to twice the features of a million instances.
    result = BagLeaveOut([_empty_batch(block, bags, size) for bags, size in chosen], [])
    for (rows, inverse), (bags, size) in zip(result.batches, chosen, strict=True):
        inside = rows < n
        U = ridge.whiten(features[rows.clamp(max=n - 1).flatten()]).reshape(*rows.shape, rank)
        U *= inside[:, :, None] if root is None else inside[:, :, None] * root[bags, None, None]
        one = torch.eye(size, dtype=torch.float64, device=features.device)
        # Padding rows of U are zero, so their rows of the matrix are those of the identity.
        K = torch.bmm(U, U.mT).double()
        solved = torch.cholesky_inverse(torch.linalg.cholesky(one - share * K))
        inverse.copy_(solved if share == 1 else torch.bmm(solved, one + (1 - share) * K))
    for bag in torch.nonzero(sizes > rank).flatten().tolist():
        span = slice(int(offsets[bag]), int(offsets[bag + 1]))
        own = symmetric(upper_gram(features[span]))
        counted = 1.0 if block.weight is None else min(float(block.weight[bag]), 1.0)
        inverse = counted * torch.cholesky_inverse(torch.linalg.cholesky(ridge.matrix() - share * counted * own))
        result.long.append(_Long(span, inverse))
    return result


def _empty_batch(block: Block, bags: Tensor, size: int) -> _Batch:
    """The rows of bags of at most `size` instances, and room for their inverses."""
    within = torch.arange(size, device=bags.device)
    inside = within < block.offsets.diff()[bags, None]
    rows = torch.where(inside, block.offsets[bags, None] + within, len(block.features))
    return _Batch(rows, block.features.new_empty(len(bags), size, size))


def _batches(sizes: Tensor, rank: int) -> Iterator[tuple[Tensor, int]]:
    """Bags of at most `rank` instances in batches of similar size: their indices, and the padded size."""
    similar = torch.floor(torch.log(sizes.double()) / math.log(LEAVE_OUT_PADDING))
    similar[sizes > rank] = -1
    for group in torch.unique(similar[similar >= 0]):
        bags = torch.nonzero(similar == group).flatten()
        size = int(sizes[bags].max())
        for batch in bags.split(max(1, LEAVE_OUT_ROWS // size)):
            yield batch, size
