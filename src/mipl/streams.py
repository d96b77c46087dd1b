"""BagStream: bags that come in chunks, since all of them would not fit into memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.supervision import Supervision

__all__ = ["BagStream", "StreamBlock"]


class StreamBlock(Protocol):
    """Some bags of a stream that are read when they are needed."""

    def read_bags(self) -> Bags:
        """The bags alone."""


class BagStream(ABC):
    """Bags in chunks of bounded size; a fitted model takes it wherever it takes bags, and reads it chunk by chunk."""

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
        return _stacked([answer(bags) for bags in self.bag_chunks()])

    def map_datasets(self, answer: Callable[[MIPLDataset], NDArray[Any]]) -> NDArray[Any]:
        """What `answer` gives for the data set of every chunk, in one array."""
        return _stacked([answer(dataset) for dataset in self.chunks()])


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if not parts:
        raise DataError("there are no bags to answer for: none is on this side of the filters and splits")
    return np.concatenate(parts)
