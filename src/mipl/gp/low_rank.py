"""Low-rank features of all bags, in shards, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.nystrom import KernelMap, gram_statistics, rotate_to_eigenbasis
from mipl.gp.shards import SHARD_ROWS, Shard, cut

__all__ = ["LowRank", "low_rank"]

_BLOCK_ROWS = 2048


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
    """Compute the features of instances (n, d) in bags (m + 1,), and rotate them to the eigenvectors of their Gram."""
    shards = []
    for bags in cut(offsets, shard_rows):
        edges = torch.as_tensor(offsets[bags.start : bags.stop + 1].copy())
        rows = X[int(edges[0]) : int(edges[-1])]
        features = torch.empty(len(rows), kernel_map.T.shape[1], dtype=X.dtype, device=X.device)
        for block, out in zip(rows.split(_BLOCK_ROWS), features.split(_BLOCK_ROWS), strict=True):
            torch.mm(kernel_map.kernel(block), kernel_map.T, out=out)
        shards.append(Shard(features, (edges - edges[0]).to(X.device), torch.tensor(candidates[bags], device=X.device)))
    gram = sum(gram_statistics(shard.features) for shard in shards)
    rotated, rotation, eigenvalues = rotate_to_eigenbasis(kernel_map, gram)
    for shard in shards:
        for block in shard.features.split(_BLOCK_ROWS):
            block.copy_(block @ rotation)
    return LowRank(shards, eigenvalues, rotated)
