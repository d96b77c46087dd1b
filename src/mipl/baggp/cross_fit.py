"""Cross-fitting: what the experts say of every training bag when they were fitted without its fold.

The bag regression leaves a bag's own vote out exactly, but in its rounds a bag's candidates travel through other bags
and come back to it, and the bag likelihood has seen them outright. So both are fitted anew without each fold in turn,
and read the bags of the fold as they would read new bags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block
from mipl.baggp.constants import CHUNK_ROWS
from mipl.baggp.likelihood import fit_bag_likelihood
from mipl.baggp.low_rank import gram
from mipl.baggp.regression import fit_bag_regression

__all__ = ["HeldOut", "assign_folds", "held_out_evidence"]


class HeldOut(NamedTuple):
    """Log evidence (m, q) of both experts, class offsets included, each bag read by experts fitted without it."""

    regression: Tensor
    likelihood: Tensor


def assign_folds(
    m: int, n_folds: int, groups: NDArray[np.int64] | None = None, weight: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """A fold (m,) for each of m bags in random order; bags of one group share a fold.

    Groups are dealt out from the largest, each to the fold that has the fewest bags so far, counted by their weights
    (m,).
    """
    if groups is None:
        return np.arange(m) % n_folds
    names, index = np.unique(groups, return_inverse=True)
    sizes = np.bincount(index, weight)
    fold_of_group, filled = np.empty(len(names), dtype=np.int64), np.zeros(n_folds, dtype=sizes.dtype)
    for g in np.argsort(-sizes, kind="stable"):
        fold_of_group[g] = np.argmin(filled)
        filled[fold_of_group[g]] += sizes[g]
    return fold_of_group[index]


def held_out_evidence(
    blocks: Sequence[Block],
    eigenvalues: Tensor,
    folds: NDArray[np.int64],
    signal_variance: float,
    kappa: float | None,
    background: Tensor | None = None,
) -> HeldOut:
    """Fit both experts without each fold (m,) and read the bags of the fold.

    The features of all blocks have the diagonal Gram matrix `eigenvalues` (R,); those of a part of the bags do not, so
    each fit rotates a copy of its own. The variance of the regression function is that of the fit to all bags.
    """
    m, q = len(folds), blocks[0].log_prior.shape[1]
    result = HeldOut(*(torch.empty(m, q, dtype=torch.float64, device=eigenvalues.device) for _ in range(2)))
    for fold in np.unique(folds):
        inside = torch.tensor(folds == fold)
        parts = inside.split([block.n_bags for block in blocks])
        kept = [block.select(~part) for block, part in zip(blocks, parts, strict=True) if not bool(part.all())]
        left_out = [block.select(part) for block, part in zip(blocks, parts, strict=True) if bool(part.any())]
        values = _rotate(kept, left_out, eigenvalues)
        regression = fit_bag_regression(kept, values, background, [signal_variance])
        likelihood = fit_bag_likelihood(kept, values, regression.posterior, kappa, background)
        for rows, expert in zip(result, (regression.expert, likelihood), strict=True):
            rows[inside] = torch.cat([expert.log_evidence(expert.logits(b.features), b.offsets) for b in left_out])
    return result


def _rotate(kept: Sequence[Block], left_out: Sequence[Block], eigenvalues: Tensor) -> Tensor:
    """Rotate the features of both in place so that the Gram matrix of `kept` is diagonal, and return it (R,)."""
    values, rotation = torch.linalg.eigh(torch.diag(eigenvalues) - gram(left_out))
    single = rotation.to(kept[0].features.dtype)
    for block in (*kept, *left_out):
        for chunk in block.features.split(CHUNK_ROWS):
            chunk.copy_(chunk @ single)
    return values.clamp(min=0)
