"""Low-rank features of all bags, in blocks, in the basis in which their Gram matrix is diagonal."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mipl.bag_posterior import segment_sum
from mipl.baggp.blocks import Block, Blocks
from mipl.baggp.constants import CHUNK_ROWS, FEWEST_FEATURES, GRAM_STRIP
from mipl.baggp.sources import Source
from mipl.baggp.weights import weigh
from mipl.gp.nystrom import KernelMap
from mipl.progress import SILENT, Phases

__all__ = ["LowRank", "Ridge", "gram_matrix", "low_rank", "rank_of", "symmetric", "upper_gram"]


class Ridge(NamedTuple):
    """A Gram matrix with noise on its diagonal.

    Attributes
    ----------
    root : (R, R), the lower Cholesky factor; (R,), the roots of the diagonal, where the Gram matrix is diagonal
    """

    root: Tensor

    @classmethod
    def of(cls, gram: Tensor, noise: float) -> Ridge:
        """Add noise to a Gram matrix (R, R), or to a diagonal one (R,)."""
        if gram.ndim == 1:
            return cls((gram + noise).sqrt())
        return cls(torch.linalg.cholesky(gram + noise * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)))

    def solve(self, right: Tensor) -> Tensor:
        """The solution (R, k) of (Gram + noise) x = right."""
        if self.root.ndim == 1:
            return right / self.root.square()[:, None]
        return torch.cholesky_solve(right, self.root)

    def whiten(self, features: Tensor) -> Tensor:
        """Features (n, R) times a root of the inverse, so that their products (n, n) are the hat matrix."""
        root = self.root.to(features.dtype)
        if root.ndim == 1:
            return features / root
        whitened: Tensor = torch.linalg.solve_triangular(root.T, features, upper=True, left=False)
        return whitened

    def matrix(self) -> Tensor:
        """Gram + noise (R, R)."""
        return torch.diag(self.root.square()) if self.root.ndim == 1 else self.root @ self.root.T


class LowRank(NamedTuple):
    """Features of bags, and their Gram matrix.

    Attributes
    ----------
    blocks : Blocks, of features (n_b, R)
    spectrum : (R,), the diagonal of their Gram matrix, which is diagonal, in ascending order
    kernel_map : KernelMap, to these features
    """

    blocks: Blocks
    spectrum: Tensor
    kernel_map: KernelMap


def rank_of(n_landmarks: int, wanted_landmarks: int, wanted_rank: int) -> int:
    """The number of features of so many landmarks: fewer in proportion where these are fewer, but not below 200.

    >>> rank_of(2000, 2000, 1000), rank_of(800, 2000, 1000), rank_of(100, 2000, 1000)
    (1000, 400, 100)
    """
    in_proportion = round(min(wanted_rank / wanted_landmarks, 1) * n_landmarks)
    return min(wanted_rank, n_landmarks, max(in_proportion, FEWEST_FEATURES))


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
    progress("Gram matrix", 0, 1)
    blocks = replace(rows, features=features)
    values, vectors = torch.linalg.eigh(gram_matrix(blocks))
    rotation = vectors.to(kernel_map.T.dtype)
    rotated = blocks.map(_rotate, features, rotation=rotation, in_place=rows.place.in_place)
    del blocks, features  # on a cluster these are other blocks than the rotated ones
    return LowRank(
        replace(rows, features=rotated),
        values.clamp(min=0),
        kernel_map._replace(T=kernel_map.T @ rotation),
    )


def _block(
    source: Source, weight: Tensor | None = None, *, kernel_map: KernelMap, front_end: BaseEstimator | None
) -> Block:
    X, offsets = source.read()
    if front_end is not None:
        X = torch.tensor(np.asarray(front_end.transform(X), dtype=np.float32), device=kernel_map.T.device)
    features = kernel_map(X)
    return Block(features, segment_sum(features, offsets), offsets, weight)


def gram_matrix(blocks: Blocks) -> Tensor:
    """The Gram matrix (R, R) of the features of all blocks, by weight."""
    return symmetric(*blocks.total(_gram, blocks.features))


def _gram(block: Block) -> tuple[Tensor]:
    return (upper_gram(block.features, block.row_weight),)


def upper_gram(features: Tensor, weight: Tensor | None = None) -> Tensor:
    """The upper triangle of the Gram matrix (R, R) of rows (n, R) by weight (n,); what is below is not to be used.

    Products of short chunks are summed in double precision.
    """
    rank = features.shape[1]
    total = torch.zeros(rank, rank, dtype=torch.float64, device=features.device)
    for start in range(0, len(features), CHUNK_ROWS):
        chunk = features[start : start + CHUNK_ROWS]
        weighted = chunk if weight is None else weigh(chunk, weight[start : start + CHUNK_ROWS])
        for left in range(0, rank, GRAM_STRIP):
            right = left + GRAM_STRIP
            total[left:right, left:] += chunk[:, left:right].T @ weighted[:, left:]
    return total


def symmetric(upper: Tensor) -> Tensor:
    """The symmetric matrix (R, R) with this upper triangle."""
    return torch.triu(upper) + torch.triu(upper, 1).T


def _rotate(block: Block, rotation: Tensor, in_place: bool) -> Block:
    features = block.features if in_place else torch.empty_like(block.features)
    for chunk, rotated in zip(block.features.split(CHUNK_ROWS), features.split(CHUNK_ROWS), strict=True):
        torch.mm(chunk.clone() if in_place else chunk, rotation, out=rotated)
    sums = segment_sum(features, block.offsets)
    return block._replace(features=features, sums=block.sums.copy_(sums) if in_place else sums)
