"""Where the instances of a block come from."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Column, Part

__all__ = ["InMemory", "Source", "in_memory"]


class Source(Protocol):
    """Instances of some bags that can be had when they are needed."""

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""


class InMemory(NamedTuple):
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

    def read(self) -> tuple[Any, Tensor]:
        """The instances (n_b, d), and the offsets (m_b + 1,) of their bags."""
        return self.X[self.rows], self.offsets


def in_memory(X: Any, offsets: NDArray[np.int64], parts: list[list[Part]]) -> Column:
    """Sources of all blocks in instances (n, d) that are in memory, in bags (m + 1,)."""
    return Column.of([[_source(X, offsets, part) for part in run] for run in parts])


def _source(X: Any, offsets: NDArray[np.int64], part: Part) -> InMemory:
    sizes = np.diff(offsets)[part.bags]
    own = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(own[-1]) + np.repeat(offsets[part.bags] - own[:-1], sizes)
    device = X.device if isinstance(X, Tensor) else None
    return InMemory(X, rows, torch.tensor(own, device=device))
