"""Low-rank features of all bags, in blocks, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block, cut, total, weigh
from mipl.baggp.constants import BLOCK_INSTANCES, CHUNK_ROWS
from mipl.gp.nystrom import KernelMap

__all__ = ["LowRank", "gram", "low_rank"]


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
    weight: Tensor | None = None,
) -> LowRank:
    """Compute features of instances (n, d) in bags (m + 1,) and rotate them, and the map, to a diagonal Gram matrix.

    Only (n, R) features are ever kept; the kernel with the landmarks is computed piece by piece. The Gram matrix counts
    bags by their `weight` (m,).
    """
    blocks = [_block(X, offsets, log_prior, bags, kernel_map, weight) for bags in cut(offsets, block_instances)]
    eigenvalues, rotation = torch.linalg.eigh(gram(blocks))
    rotation = rotation.to(X.dtype)
    for block in blocks:
        for chunk in block.features.split(CHUNK_ROWS):
            chunk.copy_(chunk @ rotation)
    return LowRank(blocks, eigenvalues.clamp(min=0), kernel_map._replace(T=kernel_map.T @ rotation))


def gram(blocks: Sequence[Block]) -> Tensor:
    """The Gram matrix (R, R) of all blocks' features, by weight; products of chunks are summed in double precision."""
    return total((product,) for block in blocks for product in _chunk_grams(block))[0]


def _chunk_grams(block: Block) -> Iterator[Tensor]:
    weights = block.row_weight
    for start, chunk in enumerate(block.features.split(CHUNK_ROWS)):
        rows = None if weights is None else weights[start * CHUNK_ROWS :][: len(chunk)]
        yield (chunk.T @ weigh(chunk, rows)).double()


def _block(
    X: Tensor,
    offsets: NDArray[np.int64],
    log_prior: NDArray[np.float64],
    bags: slice,
    kernel_map: KernelMap,
    weight: Tensor | None,
) -> Block:
    edges = torch.tensor(offsets[bags.start : bags.stop + 1])
    rows = X[int(edges[0]) : int(edges[-1])]
    known = torch.tensor(log_prior[bags], device=X.device)
    return Block(kernel_map(rows), (edges - edges[0]).to(X.device), known, None if weight is None else weight[bags])
