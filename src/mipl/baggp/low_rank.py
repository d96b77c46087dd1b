"""Low-rank features of all bags, in shards, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.shards import BLOCK_ROWS, SHARD_ROWS, Shard, cut, total
from mipl.gp.nystrom import KernelMap

__all__ = ["LowRank", "gram_statistics", "low_rank"]


class LowRank(NamedTuple):
    """Shards of features (n_s, R) whose Gram matrix over all shards is diag(eigenvalues), and the map to them."""

    shards: list[Shard]
    eigenvalues: Tensor
    kernel_map: KernelMap


def low_rank(
    X: Tensor,
    offsets: NDArray[np.int64],
    candidates: NDArray[np.bool_],
    kernel_map: KernelMap,
    shard_rows: int = SHARD_ROWS,
) -> LowRank:
    """Compute features of instances (n, d) in bags (m + 1,) and rotate them, and the map, to a diagonal Gram matrix.

    Only (n, R) features are ever kept; the kernel with the landmarks is computed block by block.
    """
    shards = [_shard(X, offsets, candidates, bags, kernel_map) for bags in cut(offsets, shard_rows)]
    (gram,) = total(gram_statistics, [block for shard in shards for block in shard.features.split(BLOCK_ROWS)])
    eigenvalues, rotation = torch.linalg.eigh(gram)
    rotation = rotation.to(X.dtype)
    for shard in shards:
        for block in shard.features.split(BLOCK_ROWS):
            block.copy_(block @ rotation)
    return LowRank(shards, eigenvalues.clamp(min=0), kernel_map._replace(T=kernel_map.T @ rotation))


def gram_statistics(features: Tensor) -> tuple[Tensor]:
    """The part (R, R) of the Gram matrix from some rows (n, R); parts are summed in double precision."""
    return ((features.T @ features).double(),)


def _shard(
    X: Tensor, offsets: NDArray[np.int64], candidates: NDArray[np.bool_], bags: slice, kernel_map: KernelMap
) -> Shard:
    edges = torch.tensor(offsets[bags.start : bags.stop + 1])
    rows = X[int(edges[0]) : int(edges[-1])]
    return Shard(kernel_map(rows), (edges - edges[0]).to(X.device), torch.tensor(candidates[bags], device=X.device))
