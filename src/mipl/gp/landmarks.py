"""Landmarks of a low-rank Gaussian process, and the lengthscale that suits the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

__all__ = ["kmeans_landmarks", "median_distance", "middle_of_wide"]

#: Lloyd's steps run on at most this many rows per landmark; more rows move the centres by less than their own noise.
_ROWS_PER_LANDMARK = 50
_BLOCK_ROWS = 4096
#: How many times further away than the middle row the furthest one is before single precision cannot hold both: it has
#: seven digits, and squares are subtracted.
_WIDE = 1e4
_MIDDLE_ROWS = 1500


def kmeans_landmarks(
    X: Tensor,
    n_landmarks: int,
    generator: torch.Generator,
    steps: int = 5,
    weights: Tensor | None = None,
    mapping: Callable[..., Iterable[Tensor]] = map,
) -> tuple[Tensor, Tensor]:
    """Landmarks by a short k-means, started from distinct random rows.

    Parameters
    ----------
    X : (n, d) tensor
        Instances. A random sample of 50 per landmark is used, or of 10,000 where that is more.
    n_landmarks : int
        Landmarks wanted. Where there are no more distinct rows than that, these rows are the landmarks.
    generator : torch.Generator
        Source of the random rows.
    steps : int, default=5
        Lloyd's steps.
    weights : (n,) tensor, default=None
        How often each row counts in means and counts; None for once. The random rows do not depend on it.
    mapping : callable, default=map
        Calls a function on blocks of rows, in order; `map` of a pool of threads shares them out.

    Returns
    -------
    centres : (M, d) tensor
        The landmarks, M <= `n_landmarks`.
    counts : (M,) tensor
        How many of the rows that were used are nearest to each.
    """
    order = torch.randperm(len(X), generator=generator).to(X.device)
    order = order[: max(_ROWS_PER_LANDMARK * n_landmarks, 10_000)]
    rows = X[order]
    middle = middle_of_wide(rows)
    if middle is not None:
        rows = rows.double() - middle
    factor = _safe_factor(rows)
    rows = rows * factor
    weight = None if weights is None else weights[order].to(rows.dtype)
    centres = _distinct(rows, n_landmarks)
    for _ in range(steps):
        nearest = torch.cat(list(mapping(partial(_nearest, centres), rows.split(_BLOCK_ROWS))))
        count = torch.bincount(nearest, weight, minlength=len(centres)).to(rows.dtype)
        if len(centres) < n_landmarks:
            break
        total = torch.zeros_like(centres).index_add_(0, nearest, rows if weight is None else rows * weight[:, None])
        # A centre that nobody is nearest to stays where it is.
        centres = torch.where(count[:, None] > 0, total / count[:, None].where(count[:, None] > 0, 1), centres)
    centres = centres / factor
    return (centres if middle is None else centres + middle).to(X.dtype), count.to(X.dtype)


def middle_of_wide(X: Tensor) -> Tensor | None:
    """The middle (d,) of rows (n, d), for differences that single precision holds; None for rows that need no care.

    These are rows of which some are ten thousand times further away than most, such as one with a code for missing
    values among its features: distances between the others are lost beside theirs.
    """
    sample = X[:: max(len(X) // _MIDDLE_ROWS, 1)]
    middle = sample.median(dim=0).values
    deviation = (sample - middle).abs().amax(dim=1)
    usual = deviation[deviation > 0]
    largest = torch.maximum(X.amax(dim=0) - middle, middle - X.amin(dim=0)).max()
    return middle if len(usual) and bool(largest > _WIDE * usual.median()) else None


def _safe_factor(X: Tensor) -> float:
    """A power of two that brings rows to a size whose squares single precision can hold: one, as a rule."""
    largest = float(X.abs().max())
    if largest == 0 or 2.0**-40 <= largest <= 2.0**40:
        return 1.0
    return 2.0 ** min(-math.frexp(largest)[1], 120)


def _distinct(rows: Tensor, k: int) -> Tensor:
    """The first k distinct rows, fewer if there are fewer; only as many rows are compared as it takes."""
    taken = k
    while True:
        unique, inverse = torch.unique(rows[:taken], dim=0, return_inverse=True)
        if len(unique) >= k or taken >= len(rows):
            break
        taken *= 4
    first = torch.full((len(unique),), len(inverse), device=rows.device)
    first = first.scatter_reduce(0, inverse, torch.arange(len(inverse), device=rows.device), "amin")
    return rows[first.sort().values[:k]]


def _nearest(centres: Tensor, block: Tensor) -> Tensor:
    # |x - z|^2 up to the |x|^2 that no comparison needs.
    half_norm = 0.5 * (centres * centres).sum(dim=1)
    return torch.addmm(half_norm, block, centres.T, alpha=-1).argmin(dim=1)


def median_distance(X: Tensor, generator: torch.Generator, rows: int = 1500, weights: Tensor | None = None) -> float:
    """The median of the non-zero distances between random rows; 1 where all rows are equal.

    Parameters
    ----------
    X : (n, d) tensor
        Instances.
    generator : torch.Generator
        Source of the random rows.
    rows : int, default=1500
        How many rows are used, at most.
    weights : (n,) tensor, default=None
        How often each row counts; None for once. A pair counts as often as the product says.

    Examples
    --------
    >>> median_distance(torch.tensor([[0.0], [0.0], [3.0]]), torch.Generator().manual_seed(0))
    3.0
    """
    chosen = torch.randperm(len(X), generator=generator)[:rows].to(X.device)
    sample = X[chosen]
    middle = middle_of_wide(sample)
    if middle is not None:
        sample = sample.double() - middle
    factor = _safe_factor(sample)
    distance = torch.nn.functional.pdist(sample * factor)
    positive = distance[distance > 0]
    if weights is None or not len(positive):
        return float(positive.median()) / factor if len(positive) else 1.0
    first, second = torch.triu_indices(len(chosen), len(chosen), 1, device=X.device)
    weight = weights[chosen].double()
    pairs = (weight[first] * weight[second])[distance > 0]
    order = positive.argsort()
    cumulative = pairs[order].cumsum(0)
    # The lower median, as torch has it.
    return float(positive[order][int(torch.searchsorted(cumulative, cumulative[-1:] / 2))]) / factor
