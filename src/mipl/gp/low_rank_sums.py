"""What the low-rank engine asks of rows: sums over blocks of them, each a pure function of a block and the parameters.

The formulas are in `mipl.gp.low_rank`. Rows are weighted by the roots of how often they count. Rows of one candidate
set share their noises, so one Gram matrix of them serves all classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.gp.matern import matern_and_derivative

__all__ = [
    "NoiseLevels",
    "Present",
    "RowBlock",
    "RowGroup",
    "RowSum",
    "Solved",
    "gradient_sums",
    "moment_sums",
    "noise_levels",
    "posterior_means",
    "row_groups",
]

# Rows whose products are summed in single precision; longer sums are added up in double precision.
CHUNK_ROWS = 4096
# Entries of the (M, M) matrices that are held at a time, one for each group of rows.
BATCH_ENTRIES = 1 << 22
# A class with more rare noises than this, as when noises follow each instance's weights, is summed row by row.
MAX_LEVELS = 8


# -------------------------------------------------------------------- rows that share noises


class RowGroup(NamedTuple):
    """Rows that agree on which of their noises are not the usual ones.

    Attributes
    ----------
    rows : (k,) array of int
        The rows.
    levels : tuple of int
        Positions in `NoiseLevels.levels` of their rare noises.
    varying : tuple of int
        Positions in `NoiseLevels.varying` of the classes in which their noises are not the usual one.
    """

    rows: NDArray[np.int64]
    levels: tuple[int, ...]
    varying: tuple[int, ...]


class NoiseLevels(NamedTuple):
    """How the noises of C classes repeat.

    Attributes
    ----------
    usual : (C,) array
        The most frequent noise of each class: that of all rows without this candidate label.
    levels : list of (int, float)
        Class and value of every other noise, in the classes that have few of them.
    varying : list of int
        The classes that have many.
    """

    usual: NDArray[np.float64]
    levels: list[tuple[int, float]]
    varying: list[int]

    def by_row(self) -> NoiseLevels:
        """The same usual noises, where all others are of each row its own."""
        return NoiseLevels(self.usual, [], list(range(len(self.usual))))


def noise_levels(noise: NDArray[np.float64]) -> NoiseLevels:
    """Find what repeats in noises (n, C).

    >>> noise_levels(np.array([[9.0, 1.0], [9.0, 1.0], [2.0, 1.0]]))
    NoiseLevels(usual=array([9., 1.]), levels=[(0, 2.0)], varying=[])
    """
    levels = NoiseLevels(np.empty(noise.shape[1]), [], [])
    for c in range(noise.shape[1]):
        values, counts = np.unique(noise[:, c], return_counts=True)
        most = int(counts.argmax())
        levels.usual[c] = values[most]
        if len(values) - 1 > MAX_LEVELS:
            levels.varying.append(c)
        else:
            levels.levels.extend((c, float(value)) for value in np.delete(values, most))
    return levels


def row_groups(noise: NDArray[np.float64], known: NoiseLevels) -> list[RowGroup]:
    """All rows of noises (n, C), each in one group; every noise is usual, of a level, or in a varying class.

    >>> noise = np.array([[9.0, 1.0], [9.0, 1.0], [2.0, 1.0]])
    >>> [(group.rows.tolist(), group.levels) for group in row_groups(noise, noise_levels(noise))]
    [([0, 1], ()), ([2], (0,))]
    """
    codes = np.zeros(noise.shape, dtype=np.int64)  # 1 + k is level k, -1 - k the varying class k, and 0 the usual noise
    for k, c in enumerate(known.varying):
        codes[:, c] = np.where(noise[:, c] == known.usual[c], 0, -1 - k)
    for k, (c, value) in enumerate(known.levels):
        codes[noise[:, c] == value, c] = 1 + k
    patterns, group_of = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(group_of.ravel(), kind="stable")
    bounds = np.cumsum(np.bincount(group_of.ravel()))[:-1]
    return [
        RowGroup(rows, tuple(int(k) - 1 for k in code if k > 0), tuple(-1 - int(k) for k in code if k < 0))
        for rows, code in zip(np.split(order, bounds), patterns, strict=True)
    ]


# -------------------------------------------------------------------- sums over rows


class RowBlock(NamedTuple):
    """Some rows.

    Attributes
    ----------
    distances : (n, M), to the landmarks
    targets, noise : (n, C), in double precision
    groups : list of RowGroup, of these rows
    weight : (n,), how often each row counts; None for once
    """

    distances: Tensor
    targets: Tensor
    noise: Tensor
    groups: list[RowGroup]
    weight: Tensor | None = None


class Present(NamedTuple):
    """The parameters of a step, in double precision.

    Attributes
    ----------
    nu, lengthscale, outputscale : float
    factor : (M, M), the Cholesky factor L of the landmarks' kernel matrix
    mean, extra_noise : (C,)
    usual : (C,), 1 / the most frequent noise of each class
    levels : class and 1 / noise of each level
    varying : classes whose noises are of each row its own
    """

    nu: float
    lengthscale: float
    outputscale: float
    factor: Tensor
    mean: Tensor
    extra_noise: Tensor
    usual: Tensor
    levels: list[tuple[int, float]]
    varying: list[int]


class Solved(NamedTuple):
    """What the sums of moments lead to.

    Attributes
    ----------
    coefficients : (M, C), posterior means of the features' weights, in double precision
    inverses : (C, M, M), of M_c, in the precision of the features
    """

    coefficients: Tensor
    inverses: Tensor


#: A function of a `RowBlock` and of parameters by name, whose values are summed over blocks.
RowSum = Callable[..., tuple[Tensor, ...]]


def moment_sums(block: RowBlock, at: Present) -> tuple[Tensor, ...]:
    """Gram matrices of the features, and their products with the weighted residuals, in double precision.

    Returns
    -------
    total : (M, M)
    levels : (levels, M, M), of the rows of each level
    varying : (varying classes, M, M), weighted by the difference to the usual weight
    right : (M, C)
    """
    phi, _ = _features(block, at)
    residual, noise = _systems(block, at)
    M, n_levels = phi.shape[1], len(at.levels)
    sums = phi.new_zeros(1 + n_levels, M * M, dtype=torch.float64)
    varying = phi.new_zeros(len(at.varying), M, M, dtype=torch.float64)
    for pieces in _batches(block.groups, M):
        grams = phi.new_empty(len(pieces), M, M)
        member = phi.new_zeros(1 + n_levels, len(pieces), dtype=torch.float64)
        member[0] = 1
        for g, piece in enumerate(pieces):
            part = phi[torch.from_numpy(piece.rows)]
            torch.mm(part.T, part, out=grams[g])
            for level in piece.levels:
                member[1 + level, g] = 1
            for k in piece.varying:
                c = at.varying[k]
                difference = 1 / noise[piece.rows, c, None] - at.usual[c]
                varying[k] += (part * difference.to(phi.dtype)).T @ part
        sums.addmm_(member, grams.view(len(pieces), -1).double())
    weighted = (residual / noise).to(phi.dtype)
    right = sum(a.T.mm(b).double() for a, b in zip(phi.split(CHUNK_ROWS), weighted.split(CHUNK_ROWS), strict=True))
    grams = sums.view(-1, M, M)
    return grams[0], grams[1:], varying, torch.as_tensor(right)


def gradient_sums(block: RowBlock, at: Present, solved: Solved) -> tuple[Tensor, ...]:
    """What the objective and its derivatives need of rows, given the solution.

    Returns
    -------
    value : (2,), the objective without determinants, and the number of rows
    by_cross : (), the product of H with the derivative of k(X, Z)
    by_noise, by_mean : (C,), the former without what the features explain
    explained : (varying classes,), the part of varying noises in the traces of W_c Phi M_c^-1 Phi' W_c
    """
    phi, derivative = _features(block, at)
    residual, noise = _systems(block, at)
    alpha = solved.coefficients.to(phi.dtype)
    solution = (residual - (phi @ alpha).double()) / noise
    H, explained = _weighted_features(block, at, solved, phi, noise)
    H.addmm_(solution.to(phi.dtype), alpha.T, alpha=-1).div_(at.outputscale)
    outer = torch.linalg.solve_triangular(at.factor.to(phi.dtype), H, upper=False, left=False).mul_(derivative)
    by_cross = torch.stack([part.sum() for part in outer.split(CHUNK_ROWS)]).double().sum()
    weight = torch.ones(len(phi), dtype=torch.float64, device=phi.device) if block.weight is None else block.weight
    logs = weight @ noise.log().sum(1)
    by_noise = weight @ (1 / noise) - solution.square().sum(0)
    value = torch.stack([(residual * solution).sum() + logs, weight.sum()])
    return value, by_cross, by_noise, weight.sqrt() @ solution, explained


def posterior_means(block: RowBlock, at: Present, coefficients: Tensor) -> NDArray[np.float64]:
    """Posterior means (n, C) at the rows, given the posterior means (M, C) of the features' weights."""
    phi, _ = _features(block._replace(weight=None), at)
    return (at.mean + (phi @ coefficients.to(phi.dtype)).double()).cpu().numpy()


def _features(block: RowBlock, at: Present) -> tuple[Tensor, Tensor]:
    """Phi (n, M), and the derivative (n, M) of k(X, Z) by the logarithm of the lengthscale, by the roots of weights."""
    values, derivative = matern_and_derivative(block.distances, at.nu, at.lengthscale, 1.0)
    phi = torch.linalg.solve_triangular(at.factor.T.to(values.dtype), values, upper=True, left=False)
    if block.weight is None:
        return phi, derivative
    root = block.weight.sqrt()[:, None].to(phi.dtype)
    return phi * root, derivative * root


def _systems(block: RowBlock, at: Present) -> tuple[Tensor, Tensor]:
    """Residuals r by the roots of weights, and the diagonals of D_c, both (n, C)."""
    residual = block.targets - at.mean
    if block.weight is not None:
        residual = block.weight.sqrt()[:, None] * residual
    return residual, block.noise + at.extra_noise


def _weighted_features(
    block: RowBlock, at: Present, solved: Solved, phi: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The sum (n, M) of W_c Phi M_c^-1 over classes, and the part of varying noises in the traces."""
    M, inverses = phi.shape[1], solved.inverses.flatten(1)
    explained = torch.zeros(len(at.varying), dtype=torch.float64, device=phi.device)
    out = torch.empty_like(phi)
    for pieces in _batches(block.groups, M):
        weights = at.usual.repeat(len(pieces), 1)
        for g, piece in enumerate(pieces):
            for level in piece.levels:
                c, weight = at.levels[level]
                weights[g, c] = weight
        matrices = weights.to(phi.dtype).mm(inverses).view(-1, M, M)
        for g, piece in enumerate(pieces):
            rows = torch.from_numpy(piece.rows)
            part = phi[rows]
            weighted = part @ matrices[g]
            for k in piece.varying:
                c = at.varying[k]
                product, own = part @ solved.inverses[c], 1 / noise[rows, c]
                explained[k] += ((own**2 - at.usual[c] ** 2) * (product * part).sum(1)).sum()
                weighted.addcmul_(product, (own - at.usual[c]).to(phi.dtype)[:, None])
            out[rows] = weighted
    return out, explained


def _batches(groups: list[RowGroup], n_landmarks: int) -> Iterator[list[RowGroup]]:
    """Groups of at most `CHUNK_ROWS` rows, as many at a time as their matrices may take memory."""
    pieces = [
        group._replace(rows=rows)
        for group in groups
        for rows in np.array_split(group.rows, math.ceil(len(group.rows) / CHUNK_ROWS))
    ]
    step = max(1, BATCH_ENTRIES // n_landmarks**2)
    return (pieces[start : start + step] for start in range(0, len(pieces), step))
