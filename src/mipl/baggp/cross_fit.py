"""Cross-fitting: fits that share their passes over the bags, and differ in the weights of the bags.

The bag regression leaves a bag's own vote out exactly, but in its rounds a bag's candidates travel through other bags
and come back to it, and the bag likelihood has seen them outright. So both are fitted without each fold of the bags
too, and read the bags of the fold as they would read new bags. A fit without a fold is a column of weights with zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block, Blocks
from mipl.baggp.constants import MIN_FOLD_BAGS, TWO_FOLDS_INSTANCES
from mipl.baggp.low_rank import LowRank, symmetric, upper_gram
from mipl.supervision import Supervision

__all__ = ["Fits", "assign_folds", "choose_folds", "fits_of"]


class Fits(NamedTuple):
    """F fits to the same blocks: that to all bags, and those without each fold.

    Attributes
    ----------
    blocks : Blocks
    W : (m, F), how often each bag counts in each fit, zero where it is held out; the first fit has all bags
    grams : F of (R, R) or (R,), the Gram matrix of each fit, its diagonal where it is diagonal
    spectrum : (R,), that of all bags
    fold : (m,), the fit that has not seen a bag; None without folds
    """

    blocks: Blocks
    W: Tensor
    grams: list[Tensor]
    spectrum: Tensor
    fold: Tensor | None

    def held_out(self, values: Tensor) -> Tensor:
        """Of values (m, F, ...) of all fits, those (m, ...) of the fit that has not seen the bag; else of the first."""
        return values[:, 0] if self.fold is None else values[torch.arange(len(values)), self.fold]

    def first(self) -> Fits:
        """The fit to all bags alone."""
        return self._replace(W=self.W[:, :1], grams=self.grams[:1], fold=None)

    def others(self) -> Fits:
        """The fits without a fold."""
        assert self.fold is not None
        return self._replace(W=self.W[:, 1:], grams=self.grams[1:], fold=self.fold - 1)


def fits_of(data: LowRank, folds: NDArray[np.int64]) -> Fits:
    """The fit to all bags, and one without each of the folds (m,) of the bags in the order of the blocks, if any."""
    blocks, device = data.blocks, data.spectrum.device
    weight = torch.ones(len(folds), dtype=torch.float64, device=device) if blocks.weight is None else blocks.weight
    if not folds.any():
        return Fits(blocks, weight[:, None], [data.spectrum], data.spectrum, None)
    fold = torch.from_numpy(folds).to(device)
    n_folds = int(folds.max()) + 1
    without = fold[:, None] != torch.arange(n_folds, device=device)
    held_out = blocks.total(_grams_of_folds, blocks.features, blocks.rows(fold), n_folds=n_folds)
    grams = [data.spectrum, *(torch.diag(data.spectrum) - symmetric(gram) for gram in held_out)]
    inside = torch.cat([torch.ones_like(without[:, :1]), without], dim=1)
    return Fits(blocks, weight[:, None] * inside, grams, data.spectrum, fold + 1)


def _grams_of_folds(block: Block, fold: Tensor, n_folds: int) -> tuple[Tensor, ...]:
    """The upper triangles of the Gram matrix of each fold's bags in a block."""
    zero = torch.zeros((), dtype=torch.float64, device=block.features.device)
    of_rows, weight = torch.repeat_interleave(fold, block.offsets.diff()), block.row_weight
    grams = []
    for f in range(n_folds):
        inside = of_rows == f
        rows = None if weight is None else weight[inside]
        grams.append(upper_gram(block.features[inside], rows) if bool(inside.any()) else zero)
    return tuple(grams)


def choose_folds(n: int, supervision: Supervision, cross_fit: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The folds (m,) of bags with n instances; all zero where there are too few bags or groups to fold.

    There are two folds for very many instances, and no more than groups. Where all bags are of one group, how far
    others differ from it cannot be known; folds of its bags still tell how much the model knows of the group.
    """
    m, groups, weight = len(supervision), supervision.groups, supervision.sample_weight
    if groups is not None and (groups == groups[0]).all():
        groups = None
    count = m if weight is None else max(m, int(weight.sum()))
    n_groups = m if groups is None else len(np.unique(groups))
    wanted = min(cross_fit, 2) if n > TWO_FOLDS_INSTANCES else cross_fit
    n_folds = min(wanted, count // MIN_FOLD_BAGS, n_groups)
    return np.zeros(m, dtype=np.int64) if n_folds < 2 else assign_folds(m, n_folds, rng, groups, weight)


def assign_folds(
    m: int,
    n_folds: int,
    random_state: np.random.Generator,
    groups: NDArray[np.int64] | None = None,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """A random fold (m,) for each of m bags, of equal sizes; bags of one group share a fold.

    Groups are dealt out from the largest, each to the fold that has the fewest bags so far, counted by their weights
    (m,).
    """
    if groups is None:
        folds = np.empty(m, dtype=np.int64)
        folds[random_state.permutation(m)] = np.arange(m) % n_folds
        return folds
    names, index = np.unique(groups, return_inverse=True)
    sizes = np.bincount(index, weight)
    fold_of_group, filled = np.empty(len(names), dtype=np.int64), np.zeros(n_folds, dtype=sizes.dtype)
    for g in np.argsort(-sizes, kind="stable"):
        fold_of_group[g] = np.argmin(filled)
        filled[fold_of_group[g]] += sizes[g]
    return fold_of_group[index]
