"""Low-rank features of all bags, in shards, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.nystrom import KernelMap, gram_statistics, principal
from mipl.gp.shards import SHARD_ROWS, Shard, cut, total

__all__ = ["LowRank", "low_rank"]

_BLOCK_ROWS = 2048
#: The subspace of features is chosen on at most this many rows; the Gram matrix in it is always exact.
_SUBSPACE_ROWS = 50_000


class LowRank(NamedTuple):
    """Shards of features (n_s, R) whose Gram matrix over all shards is diag(eigenvalues), and the map to them."""

    shards: list[Shard]
    eigenvalues: Tensor
    kernel_map: KernelMap


def low_rank(
    X: Tensor,
    offsets: NDArray[np.int64],
    candidates: NDArray[np.bool_],
    all_landmarks: KernelMap,
    rank: int,
    shard_rows: int = SHARD_ROWS,
) -> LowRank:
    """Compute features of instances (n, d) in bags (m + 1,), in random order: the `rank` principal ones of the map's.

    Only (n, rank) features are ever kept; the kernel with the landmarks is computed block by block.
    """
    blocks = X[:_SUBSPACE_ROWS].split(_BLOCK_ROWS)
    (gram,) = total(lambda block: gram_statistics(all_landmarks(block)), blocks)
    kernel_map, eigenvalues = principal(all_landmarks, gram, rank)
    shards = [_shard(X, offsets, candidates, bags, kernel_map) for bags in cut(offsets, shard_rows)]
    if len(X) > _SUBSPACE_ROWS:
        blocks = tuple(block for shard in shards for block in shard.features.split(_BLOCK_ROWS))
        (gram,) = total(gram_statistics, blocks)
        kernel_map, eigenvalues = _rotate(blocks, kernel_map, gram)
    return LowRank(shards, eigenvalues, kernel_map)


def _shard(
    X: Tensor, offsets: NDArray[np.int64], candidates: NDArray[np.bool_], bags: slice, kernel_map: KernelMap
) -> Shard:
    edges = torch.tensor(offsets[bags.start : bags.stop + 1])
    rows = X[int(edges[0]) : int(edges[-1])]
    return Shard(kernel_map(rows), (edges - edges[0]).to(X.device), torch.tensor(candidates[bags], device=X.device))


def _rotate(blocks: Sequence[Tensor], kernel_map: KernelMap, gram: Tensor) -> tuple[KernelMap, Tensor]:
    """Rotate blocks of features in place to the eigenvectors of their Gram matrix."""
    eigenvalues, rotation = torch.linalg.eigh(gram)
    rotation = rotation.to(kernel_map.T.dtype)
    for block in blocks:
        block.copy_(block @ rotation)
    return kernel_map._replace(T=kernel_map.T @ rotation), eigenvalues.clamp(min=0)
