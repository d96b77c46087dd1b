"""Where the bags of a fit come from: memory, or files that are read block by block."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Column, Part, divide
from mipl.baggp.digests import digests_of_instances, instances_in_order
from mipl.bags import Bags
from mipl.streams import BagStream, StreamBlock

__all__ = ["InFiles", "InMemory", "Source", "Training", "ready"]


class Source(Protocol):
    """The instances of a block, which can be had when they are needed."""

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""


class Training(Protocol):
    """The bags of a fit, called by their positions in the order (m,) in which they are `arranged`."""

    @property
    def n_bags(self) -> int:
        """The number m of bags."""

    @property
    def n_instances(self) -> int:
        """The number n of instances."""

    def digests(self) -> NDArray[np.uint64]:
        """Digests (m,) of the instances of each bag, in the order in which bags came."""

    def arranged(self, order: NDArray[np.int64]) -> Self:
        """The same bags in this order (m,), the instances of each in an order that depends on what they are."""

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""

    def divide(self, folds: NDArray[np.int64]) -> list[list[Part]]:
        """All bags in runs that are read at a time, each run by the folds (m,) of its bags."""

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""


# -------------------------------------------------------------------- memory


class InMemory:
    """Bags in memory.

    Parameters
    ----------
    bags : Bags
        All bags.
    order : (m,) int64, default=None
        The order in which they are arranged; None for bags and instances as they are.
    """

    def __init__(self, bags: Bags, order: NDArray[np.int64] | None = None) -> None:
        self._bags, self._order = bags, order
        self.n_bags, self.n_instances = len(bags), bags.n_instances

    def digests(self) -> NDArray[np.uint64]:
        """Digests (m,) of the instances of each bag, in the order in which bags came."""
        return digests_of_instances(self._bags)

    def arranged(self, order: NDArray[np.int64]) -> InMemory:
        """The same bags in this order (m,), the instances of each in an order that depends on what they are."""
        return InMemory(self._bags, order)

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""
        if self._order is None:
            return self._bags if bags is None else self._bags[bags]
        return instances_in_order(self._bags[self._order if bags is None else self._order[bags]])

    def divide(self, folds: NDArray[np.int64]) -> list[list[Part]]:
        """All bags in runs that are read at a time, each run by the folds (m,) of its bags."""
        return divide(self.n_instances, folds)

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""
        if self._order is None:
            return ready(self._bags.instances, self._bags.offsets, parts)
        return Column.of([[_Chosen(self._bags, self._order[part.bags]) for part in run] for run in parts])


class _Chosen(NamedTuple):
    """Some bags of those in memory; they are copied, and their instances put in order, when they are needed.

    Attributes
    ----------
    bags : Bags
    chosen : (m_b,), positions
    """

    bags: Bags
    chosen: NDArray[np.int64]

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""
        return len(self.chosen)

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""
        bags = instances_in_order(self.bags[self.chosen])
        return bags.instances, torch.tensor(bags.offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the bags of the block travel to another process."""
        return _Chosen, (self.bags[self.chosen], np.arange(self.n_bags))


class _Rows(NamedTuple):
    """Some rows of what is in memory anyway; they are copied when they are needed.

    Attributes
    ----------
    X : (n, d) tensor or array, all instances
    rows : (n_b,), those of the block
    offsets : (m_b + 1,), its bags as segments of these
    """

    X: Any
    rows: NDArray[np.int64]
    offsets: Tensor

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""
        return len(self.offsets) - 1

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""
        return self.X[self.rows], self.offsets

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the rows of the block travel to another process."""
        X, offsets = self.read()
        return _Rows, (X, np.arange(len(self.rows)), offsets)


def ready(X: Any, offsets: NDArray[np.int64], parts: list[list[Part]]) -> Column:
    """Sources of all blocks in instances (n, d) that are in memory, in bags (m + 1,)."""
    return Column.of([[_rows(X, offsets, part) for part in run] for run in parts])


def _rows(X: Any, offsets: NDArray[np.int64], part: Part) -> _Rows:
    sizes = np.diff(offsets)[part.bags]
    own = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(own[-1]) + np.repeat(offsets[part.bags] - own[:-1], sizes)
    device = X.device if isinstance(X, Tensor) else None
    return _Rows(X, rows, torch.tensor(own, device=device))


# -------------------------------------------------------------------- files


class InFiles:
    """Bags in files.

    Parameters
    ----------
    stream : BagStream
        Such as a `mipl.Scan`.
    order : (m,) int64, default=None
        The order in which they are arranged; None for bags and instances as they are. Runs are read in the order of
        the files all the same.
    """

    def __init__(self, stream: BagStream, order: NDArray[np.int64] | None = None) -> None:
        self._stream, self._sorts = stream, order is not None
        self.n_bags, self.n_instances = len(stream), stream.n_instances
        self._order = np.arange(self.n_bags) if order is None else order

    def digests(self) -> NDArray[np.uint64]:
        """Digests (m,) of the instances of each bag, in the order in which bags came."""
        return self._stream.map_bags(digests_of_instances)

    def arranged(self, order: NDArray[np.int64]) -> InFiles:
        """The same bags in this order (m,), the instances of each in an order that depends on what they are."""
        return InFiles(self._stream, order)

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""
        wanted = self._order if bags is None else self._order[bags]
        read = self._stream.to_dataset().bags if bags is None else self._stream.take_bags(np.sort(wanted))
        return instances_in_order(read[np.argsort(np.argsort(wanted))]) if self._sorts else read

    def divide(self, folds: NDArray[np.int64]) -> list[list[Part]]:
        """All bags in runs that are read at a time, each run by the folds (m,) of its bags."""
        places = np.argsort(self._order)
        runs = divide(self.n_instances, folds[places])
        return [[part._replace(bags=places[part.bags]) for part in run] for run in runs]

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""
        runs = []
        for run in parts:
            positions = [self._order[part.bags] for part in run]
            start, stop = min(map(np.min, positions)), max(map(np.max, positions)) + 1
            block = self._stream.block(int(start), int(stop))
            runs.append([_InFile(block, bags - start, self._sorts) for bags in positions])
        return Column.of(runs)


class _InFile(NamedTuple):
    """Some bags of a run that is read from files.

    Attributes
    ----------
    run : StreamBlock, the run
    bags : (m_b,), positions in the run
    sorts : bool, whether instances are put in order
    """

    run: StreamBlock
    bags: NDArray[np.int64]
    sorts: bool

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""
        return len(self.bags)

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""
        bags = _read(self.run)[self.bags]
        if self.sorts:
            bags = instances_in_order(bags)
        return bags.instances, torch.tensor(bags.offsets)


#: The run that was read last: the blocks of a run are computed one after the other, and each needs a part of it.
_LAST: tuple[StreamBlock, Bags] | None = None


def _read(run: StreamBlock) -> Bags:
    global _LAST
    last = _LAST
    if last is not None and last[0] is run:
        return last[1]
    bags = run.read_bags()
    _LAST = run, bags
    return bags
