"""BagStream: bags that come in chunks, since all of them would not fit into memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.errors import DataError

__all__ = ["BagStream"]


class BagStream(ABC):
    """Bags in chunks of bounded size; a fitted model takes it wherever it takes bags, and reads it chunk by chunk."""

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
