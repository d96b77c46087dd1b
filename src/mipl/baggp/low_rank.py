"""Low-rank features of all bags, in blocks, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mipl.bag_posterior import segment_sum
from mipl.baggp.blocks import Block, Blocks, add_up
from mipl.baggp.constants import CHUNK_ROWS
from mipl.baggp.sources import Source
from mipl.baggp.weights import weigh
from mipl.gp.nystrom import KernelMap
from mipl.progress import SILENT, Phases

__all__ = ["LowRank", "Spectrum", "gram", "low_rank"]


class Spectrum(NamedTuple):
    """A Gram matrix (R, R) as vectors @ diag(values) @ vectors.T.

    Attributes
    ----------
    values : (R,)
    vectors : (R, R), or None where the Gram matrix is diagonal
    """

    values: Tensor
    vectors: Tensor | None = None

    @classmethod
    def of(cls, gram: Tensor) -> Spectrum:
        """Diagonalise a Gram matrix."""
        values, vectors = torch.linalg.eigh(gram)
        return cls(values.clamp(min=0), vectors)

    def solve(self, right: Tensor, noise: float) -> Tensor:
        """The solution (R, k) of (Gram + noise) x = right."""
        if self.vectors is None:
            return right / (self.values + noise)[:, None]
        return self.vectors @ ((self.vectors.T @ right) / (self.values + noise)[:, None])


class LowRank(NamedTuple):
    """Features of bags, and their Gram matrices.

    Attributes
    ----------
    blocks : Blocks, of features (n_b, R)
    spectrum : Spectrum, of the diagonal Gram matrix of all blocks
    fold_grams : per fold the Gram matrix (R, R) of its blocks
    kernel_map : KernelMap, to these features
    """

    blocks: Blocks
    spectrum: Spectrum
    fold_grams: dict[int, Tensor]
    kernel_map: KernelMap


def low_rank(
    rows: Blocks, kernel_map: KernelMap, front_end: BaseEstimator | None = None, progress: Phases = SILENT
) -> LowRank:
    """Compute features of rows and rotate them, and the map, to a diagonal Gram matrix.

    Parameters
    ----------
    rows : Blocks
        Of `mipl.baggp.sources`: where the instances of each block come from.
    kernel_map : KernelMap
        From instances to features; only (n, R) features are ever kept, the kernel with the landmarks is computed piece
        by piece.
    front_end : fitted transformer, default=None
        From raw instances to the space of the kernel; None where they are there already.
    progress : Phases, default=SILENT
        Told how far it is.
    """
    columns = [rows.features] if rows.weight is None else [rows.features, rows.rows(rows.weight)]
    shared, n_runs = {"kernel_map": kernel_map, "front_end": front_end}, len(rows.parts)
    features = rows.place.map(_block, columns, shared, progress.counting("features", 0, n_runs))
    blocks, grams = replace(rows, features=features), {}
    for i, fold in enumerate(blocks.folds):
        progress("Gram matrix", i, len(blocks.folds))
        grams[fold] = _total_gram(blocks, fold)
    values, vectors = torch.linalg.eigh(add_up((gram,) for gram in grams.values())[0])
    rotation = vectors.to(kernel_map.T.dtype)
    rotated = blocks.map(_rotate, features, rotation=rotation, in_place=rows.place.in_place)
    del blocks, features  # on a cluster these are other blocks than the rotated ones
    return LowRank(
        replace(rows, features=rotated),
        Spectrum(values.clamp(min=0)),
        {fold: vectors.T @ gram @ vectors for fold, gram in grams.items()},
        kernel_map._replace(T=kernel_map.T @ rotation),
    )


def _total_gram(blocks: Blocks, fold: int) -> Tensor:
    chosen = blocks.only([fold])
    return chosen.total(gram, chosen.features)[0]


def _block(
    source: Source, weight: Tensor | None = None, *, kernel_map: KernelMap, front_end: BaseEstimator | None
) -> Block:
    X, offsets = source.read()
    if front_end is not None:
        X = torch.tensor(np.asarray(front_end.transform(X), dtype=np.float32), device=kernel_map.T.device)
    features = kernel_map(X)
    return Block(features, segment_sum(features, offsets), offsets, weight)


def gram(block: Block) -> tuple[Tensor, ...]:
    """The Gram matrix (R, R) of a block, by weight; products of short chunks are summed in double precision."""
    chunks = block.features.split(CHUNK_ROWS)
    rows = block.row_weight
    weights = [None] * len(chunks) if rows is None else rows.split(CHUNK_ROWS)
    return add_up(((chunk.T @ weigh(chunk, weight)).double(),) for chunk, weight in zip(chunks, weights, strict=True))


def _rotate(block: Block, rotation: Tensor, in_place: bool) -> Block:
    target = block if in_place else block._replace(features=block.features.clone(), sums=block.sums.clone())
    for chunk in target.features.split(CHUNK_ROWS):
        chunk.copy_(chunk @ rotation)
    target.sums.copy_(segment_sum(target.features, target.offsets))
    return target
