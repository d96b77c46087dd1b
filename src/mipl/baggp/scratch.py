"""A scratch file for blocks that do not fit into memory.

The file has no name, so nothing of it is left behind whatever happens to the process. Blocks are mapped, not read:
their pages come from the system's cache as long as it has room for them, and are given back after every use.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading

import numpy as np
import torch
from torch import Tensor

from mipl.baggp.blocks import Block
from mipl.errors import UnavailableError

__all__ = ["Scratch", "release"]


class Scratch:
    """A file without a name in the folder for temporary files, which `TMPDIR` sets."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="mipl-scratch-")  # noqa: SIM115, closed by close()
        self._end = 0
        self._lock = threading.Lock()

    def put(self, block: Block) -> Block:
        """The same block with its features and sums in the file."""
        if block.maps:
            return block
        (features, first), (sums, second) = self._write(block.features), self._write(block.sums)
        return block._replace(features=features, sums=sums, maps=(first, second))

    def close(self) -> None:
        """Give the disk space back; blocks that are still in use keep theirs until they are gone."""
        self._file.close()

    def _write(self, tensor: Tensor) -> tuple[Tensor, mmap.mmap]:
        values = tensor.numpy()
        size = max(values.nbytes, 1)
        with self._lock:
            start = self._end
            self._end += -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        try:
            # Reserve the space now: a full disk is an error here, and a signal that kills the process in a map.
            os.posix_fallocate(self._file.fileno(), start, size)
        except OSError as error:
            raise UnavailableError(
                f"no room for {size / 2**20:.0f} MiB more in the scratch file in {tempfile.gettempdir()}: "
                f"{error.strerror}; "
                "set TMPDIR to a folder with more room, raise memory_budget, or lower rank"
            ) from error
        place = mmap.mmap(self._file.fileno(), size, offset=start)
        mapped = np.frombuffer(place, dtype=values.dtype, count=values.size).reshape(values.shape)
        mapped[:] = values
        return torch.from_numpy(mapped), place


def release(block: Block) -> None:
    """Give back the memory of a block that lies in a scratch file; what was written stays in the file."""
    for place in block.maps:
        place.madvise(mmap.MADV_DONTNEED)
