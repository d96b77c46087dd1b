"""Low-rank features of all bags, in blocks, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block, cut, total
from mipl.baggp.constants import BLOCK_INSTANCES, CHUNK_ROWS
from mipl.gp.nystrom import KernelMap

__all__ = ["LowRank", "low_rank"]


class LowRank(NamedTuple):
    """Blocks of features (n_b, R) whose Gram matrix over all blocks is diag(eigenvalues), and the map to them."""

    blocks: list[Block]
    eigenvalues: Tensor
    kernel_map: KernelMap


def low_rank(
    X: Tensor,
    offsets: NDArray[np.int64],
    log_prior: NDArray[np.float64],
    kernel_map: KernelMap,
    block_instances: int = BLOCK_INSTANCES,
) -> LowRank:
    """Compute features of instances (n, d) in bags (m + 1,) and rotate them, and the map, to a diagonal Gram matrix.

    Only (n, R) features are ever kept; the kernel with the landmarks is computed piece by piece.
    """
    blocks = [_block(X, offsets, log_prior, bags, kernel_map) for bags in cut(offsets, block_instances)]
    eigenvalues, rotation = torch.linalg.eigh(_gram([block.features for block in blocks]))
    rotation = rotation.to(X.dtype)
    for block in blocks:
        for chunk in block.features.split(CHUNK_ROWS):
            chunk.copy_(chunk @ rotation)
    return LowRank(blocks, eigenvalues.clamp(min=0), kernel_map._replace(T=kernel_map.T @ rotation))


def _gram(features: Sequence[Tensor]) -> Tensor:
    """The Gram matrix (R, R) of the features of all blocks; products of short chunks are summed in double precision."""
    chunks = (chunk for block in features for chunk in block.split(CHUNK_ROWS))
    return total(((chunk.T @ chunk).double(),) for chunk in chunks)[0]


def _block(
    X: Tensor, offsets: NDArray[np.int64], log_prior: NDArray[np.float64], bags: slice, kernel_map: KernelMap
) -> Block:
    edges = torch.tensor(offsets[bags.start : bags.stop + 1])
    rows = X[int(edges[0]) : int(edges[-1])]
    return Block(kernel_map(rows), (edges - edges[0]).to(X.device), torch.tensor(log_prior[bags], device=X.device))
