"""Where the bags of a fit come from: memory, or files that are read block by block."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Column, Part
from mipl.baggp.digests import bag_digests
from mipl.bags import Bags
from mipl.dataset import MIPLDataset
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
    """The bags of a fit."""

    @property
    def n_bags(self) -> int:
        """The number m of bags."""

    @property
    def n_instances(self) -> int:
        """The number n of instances."""

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""

    def digests(self, candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Digests (m,) of the bags with their candidate sets (m, q)."""


# -------------------------------------------------------------------- memory


class InMemory:
    """Bags in memory.

    Parameters
    ----------
    bags : Bags
        All bags.
    """

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self.n_bags, self.n_instances = len(bags), bags.n_instances

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""
        return self._bags if bags is None else self._bags[bags]

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""
        return ready(self._bags.instances, self._bags.offsets, parts)

    def digests(self, candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Digests (m,) of the bags with their candidate sets (m, q)."""
        return bag_digests(self._bags, candidates)


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
    """

    def __init__(self, stream: BagStream) -> None:
        self._stream = stream
        self.n_bags, self.n_instances = len(stream), stream.n_instances

    def take(self, bags: NDArray[np.int64] | None) -> Bags:
        """Some bags by their positions in ascending order, or all."""
        return self._stream.to_dataset().bags if bags is None else self._stream.take_bags(bags)

    def sources(self, parts: list[list[Part]]) -> Column:
        """The raw instances of all blocks."""
        runs = []
        for run in parts:
            start, stop = (int(f([f(part.bags) for part in run])) for f in (min, max))
            block = self._stream.block(start, stop + 1)
            runs.append([_InFile(block, part.bags - start) for part in run])
        return Column.of(runs)

    def digests(self, candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Digests (m,) of the bags with their candidate sets (m, q)."""
        return self._stream.map_datasets(_digests)


def _digests(dataset: MIPLDataset) -> NDArray[np.uint64]:
    return bag_digests(dataset.bags, dataset.candidates)


class _InFile(NamedTuple):
    """Some bags of a run that is read from files.

    Attributes
    ----------
    run : StreamBlock, the run
    bags : (m_b,), positions in the run
    """

    run: StreamBlock
    bags: NDArray[np.int64]

    @property
    def n_bags(self) -> int:
        """The number m_b of bags."""
        return len(self.bags)

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""
        bags = _read(self.run)[self.bags]
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
