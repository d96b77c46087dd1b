"""How much memory a file may ask for: sizes that it declares are counted before anything of that size is made."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, BinaryIO

from mipl.errors import DataError, ParameterError

__all__ = ["Allowance", "check_max_bytes", "default_max_bytes", "read_limited"]

_PIECE = 1 << 24
#: Where the machine does not tell its memory.
_USUAL_MEMORY = 16 << 30


def default_max_bytes() -> int:
    """Half of the machine's memory: what is read is copied at least once on its way to a data set."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return _USUAL_MEMORY // 2


def check_max_bytes(max_bytes: Any) -> None:
    """Refuse a limit that is no positive integer; None stands for the default."""
    if max_bytes is None:
        return
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, Integral) or max_bytes < 1:
        raise ParameterError(f"max_bytes={max_bytes!r}; it must be a positive integer, or None for half of the memory")


class Allowance:
    """The bytes that one file may still ask for.

    Parameters
    ----------
    where : str
        What the error calls the file.
    max_bytes : int or None
        How many bytes in all; None takes half of the machine's memory.
    """

    def __init__(self, where: str, max_bytes: int | None) -> None:
        self._where = where
        self.max_bytes = default_max_bytes() if max_bytes is None else int(max_bytes)
        self._taken = 0

    def take(self, size: int) -> None:
        """Count `size` bytes, or raise a `DataError` where they are more than what is left."""
        self._taken += size
        if self._taken > self.max_bytes:
            raise DataError(
                f"{self._where} would take at least {_size(self._taken)} of memory, more than the "
                f"{_size(self.max_bytes)} that are allowed; if the file is right, pass max_bytes=N"
            )


def read_limited(stream: BinaryIO, allowance: Allowance) -> bytes:
    """All bytes of a stream that may be much longer than the file behind it."""
    parts = []
    while part := stream.read(_PIECE):
        allowance.take(len(part))
        parts.append(part)
    return b"".join(parts)


def _size(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"
