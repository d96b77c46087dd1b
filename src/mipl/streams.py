"""BagStream: bags that come in chunks, since all of them would not fit into memory.

Models answer chunk by chunk, in this process or on the cluster that the stream is `on`; only the stream knows which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.clusters import map_on_cluster
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.supervision import Supervision

__all__ = ["BagStream", "StreamBlock"]


class StreamBlock(Protocol):
    """Some bags of a stream that are read when they are needed."""

    @property
    def start(self) -> int:
        """The position of the first bag."""

    @property
    def stop(self) -> int:
        """The position after that of the last bag."""

    def read(self) -> MIPLDataset:
        """The bags with all that is known of them."""

    def read_bags(self) -> Bags:
        """The bags alone."""


class BagStream(ABC):
    """Bags in chunks of bounded size; a fitted model takes it wherever it takes bags, and reads it chunk by chunk.

    Attributes
    ----------
    client : distributed.Client or None
        The client of the cluster on which chunks are worked on; None for this process.
    """

    client: Any = None

    @property
    def reading(self) -> dict[str, Any]:
        """How the files are read, as `MIPLDataset.reading`."""
        return {}

    @abstractmethod
    def __len__(self) -> int:
        """The number m of bags."""

    @property
    @abstractmethod
    def n_instances(self) -> int:
        """The number n of instances."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number d of features."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, None where they have none."""

    @property
    @abstractmethod
    def instance_shape(self) -> tuple[int, ...]:
        """The shape of an instance."""

    @property
    @abstractmethod
    def classes(self) -> NDArray[Any]:
        """The classes (q,)."""

    @abstractmethod
    def supervision(self) -> Supervision:
        """What is known of the labels of all bags, in order."""

    @abstractmethod
    def take(self, bags: NDArray[np.int64]) -> MIPLDataset:
        """Some bags in memory, by their positions in ascending order."""

    @abstractmethod
    def block(self, start: int, stop: int) -> StreamBlock:
        """The bags from one position to another, as something that is small to send and can be read anywhere."""

    @abstractmethod
    def chunk_blocks(self) -> Sequence[StreamBlock]:
        """All bags in blocks of about the size of a chunk."""

    @abstractmethod
    def on(self, client: Any) -> Self:
        """The same bags, whose chunks are read and worked on by the workers of a Dask cluster.

        Parameters
        ----------
        client : distributed.Client
            A client of the cluster; None for this process.
        """

    @abstractmethod
    def to_dataset(self) -> MIPLDataset:
        """All bags in memory."""

    @abstractmethod
    def chunks(self) -> Iterator[MIPLDataset]:
        """The bags with what is known of them, chunk by chunk."""

    @abstractmethod
    def bag_chunks(self) -> Iterator[Bags]:
        """The bags alone, chunk by chunk, which need no candidates."""

    def map_bags(self, answer: Callable[[Bags], NDArray[Any]]) -> NDArray[Any]:
        """What `answer` gives for the bags of every chunk, in one array."""
        if self.client is None:
            return _stacked([answer(bags) for bags in self.bag_chunks()])
        return _stacked(map_on_cluster(self.client, partial(_answer_bags, answer), self.chunk_blocks()))

    def map_datasets(self, answer: Callable[[MIPLDataset], NDArray[Any]]) -> NDArray[Any]:
        """What `answer` gives for the data set of every chunk, in one array."""
        return _stacked(self.each(answer))

    def each(self, answer: Callable[[MIPLDataset], Any]) -> list[Any]:
        """What `answer` gives for the data set of every chunk."""
        if self.client is None:
            return [answer(dataset) for dataset in self.chunks()]
        return map_on_cluster(self.client, partial(_answer, answer), self.chunk_blocks())

    def take_bags(self, bags: NDArray[np.int64]) -> Bags:
        """Some bags in memory without what is known of them, by their positions in ascending order."""
        if self.client is None:
            return self.take(bags).bags
        blocks = [block for block in self.chunk_blocks() if np.any((bags >= block.start) & (bags < block.stop))]
        return Bags.concatenate(map_on_cluster(self.client, partial(_some_bags, bags), blocks))


def _answer(answer: Callable[[MIPLDataset], Any], block: StreamBlock) -> Any:
    return answer(block.read())


def _answer_bags(answer: Callable[[Bags], Any], block: StreamBlock) -> Any:
    return answer(block.read_bags())


def _some_bags(bags: NDArray[np.int64], block: StreamBlock) -> Bags:
    return block.read_bags()[bags[(bags >= block.start) & (bags < block.stop)] - block.start]


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if not parts:
        raise DataError("there are no bags to answer for: none is on this side of the filters and splits")
    return np.concatenate(parts)
