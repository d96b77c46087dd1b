"""Blocks: the features of some bags, and how a fit goes through all of them.

Everything that BagGP learns is a sum over bags. A step is written as *statistics*, pure functions of one block and the
present parameters, and a *solve* that sees only their sums. Where blocks are kept and their statistics are computed is
the affair of a *place* (`mipl.baggp.places`): this process, with or without a scratch file, or a cluster.

Bags are cut into *runs* of consecutive bags, each run into one block per fold of cross-fitting, so that a fit without a
fold leaves whole blocks out. The cut depends on the bags alone, and sums are taken in the order of blocks within runs
and of runs, so that the result does not depend on the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from mmap import mmap
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.constants import CHUNK_ROWS, RUN_INSTANCES, SUM_FAN_IN

__all__ = ["Block", "Blocks", "Column", "Part", "Place", "add_up", "divide", "thin_product", "tree_sum"]


class Block(NamedTuple):
    """The features of some bags.

    Attributes
    ----------
    features : (n_b, R) float32
    sums : (m_b, R) float32, of the features over each bag
    offsets : (m_b + 1,) int64, the bags as segments of the rows
    weight : (m_b,), how often each bag counts; None for once
    maps : the maps of a scratch file in which features and sums lie; none if they are in memory
    """

    features: Tensor
    sums: Tensor
    offsets: Tensor
    weight: Tensor | None = None
    maps: tuple[mmap, ...] = ()

    @property
    def row_weight(self) -> Tensor | None:
        """How often each instance counts (n_b,), None for once."""
        return None if self.weight is None else torch.repeat_interleave(self.weight, self.offsets.diff())


class Part(NamedTuple):
    """The bags of a block: their positions (m_b,) among all bags, and the fold that they belong to."""

    bags: NDArray[np.int64]
    fold: int


class Column(NamedTuple):
    """One value per block, by run: what the place keeps for the run, and which entries of it belong to the column."""

    runs: list[Any]
    picks: list[list[int]]

    @classmethod
    def of(cls, runs: list[list[Any]]) -> Column:
        """All values of lists, one list per run."""
        return cls(runs, [list(range(len(run))) for run in runs])


class Place(Protocol):
    """Where the blocks are."""

    #: Whether a block may be changed where it lies, because nobody will ever compute it anew.
    in_place: bool

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Column],
        shared: dict[str, Any],
        each: Callable[[int], None] | None = None,
    ) -> Column:
        """Call a function with the entries of columns, block by block; the results stay where they were computed.

        Where the calls are made here and now, `each` hears from the calling thread how many runs are done.
        """

    def total(
        self, function: Callable[..., Any], columns: Sequence[Column], shared: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""

    def each(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        """Results of a function of values in this process that are not blocks, in order."""

    def fetch(self, column: Column) -> list[Any]:
        """The values of a column in this process, one per block."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of a fit.

    Values of bags are held in the order of the blocks: those of `bags`.

    Attributes
    ----------
    place : Place
    features : Column of Block, or of what blocks are computed from
    parts : per run a list of Part
    all_weights : (m,), how often each of all bags counts, by its position; None for once
    """

    place: Place
    features: Column
    parts: list[list[Part]]
    all_weights: Tensor | None = None

    @property
    def weight(self) -> Tensor | None:
        """How often the bags count (m,), in the order of the blocks; None for once."""
        return None if self.all_weights is None else self.all_weights[torch.from_numpy(self.bags)]

    @property
    def bags(self) -> NDArray[np.int64]:
        """Positions (m,) of the bags among all bags, in the order of the blocks."""
        return np.concatenate([part.bags for run in self.parts for part in run])

    def rows(self, values: Tensor) -> Column:
        """Cut values (m, ...) of bags in the order of the blocks into blocks."""
        pieces = iter(values.split([len(part.bags) for run in self.parts for part in run]))
        return Column(
            [[next(pieces) for _ in run] for run in self.parts], [list(range(len(run))) for run in self.parts]
        )

    def map(self, function: Callable[..., Any], *columns: Column, **shared: Any) -> Column:
        """Call a function with the entries of columns, block by block; the results stay where they were computed."""
        return self.place.map(function, columns, shared)

    def total(self, function: Callable[..., Any], *columns: Column, **shared: Any) -> tuple[Tensor, ...]:
        """Sum what a function returns for every block, entry by entry."""
        return self.place.total(function, columns, shared)

    def cat(self, function: Callable[..., Any], *columns: Column, **shared: Any) -> Tensor:
        """Values (m, ...) of bags in the order of the blocks, from those that a function returns for every block."""
        return torch.cat(self.place.fetch(self.place.map(function, columns, shared)))


def divide(n_instances: int, folds: NDArray[np.int64], instances: int = RUN_INSTANCES) -> list[list[Part]]:
    """Cut bags into runs of equally many bags, with about so many instances each, and each run by the bags' folds (m,).

    >>> [[part.bags.tolist() for part in run] for run in divide(100, np.array([0, 1, 0, 1, 0]), instances=60)]
    [[[0, 2], [1]], [[4], [3]]]
    """
    m = len(folds)
    length = max(1, round(instances * m / n_instances))
    return [
        [Part(start + np.flatnonzero(inside == fold), int(fold)) for fold in np.unique(inside)]
        for start in range(0, m, length)
        for inside in (folds[start : start + length],)
    ]


def add_up(values: Iterable[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Sum tuples of tensors entry by entry, in the order given."""
    return reduce(lambda a, b: tuple(map(add, a, b)), values)


def tree_sum(values: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Sum tuples of tensors by a tree of fixed shape, as a cluster does it."""
    while len(values) > 1:
        values = [add_up(values[i : i + SUM_FAN_IN]) for i in range(0, len(values), SUM_FAN_IN)]
    return values[0]


def thin_product(features: Tensor, weights: Tensor) -> Tensor:
    """Multiply features (n, R) by weights (R, k), k small; BLAS takes half the time on transposed chunks.

    The result lies in memory as its transpose (k, n).
    """
    left = weights.T.contiguous()
    return torch.cat([left @ chunk.T for chunk in features.split(CHUNK_ROWS)], dim=1).T
