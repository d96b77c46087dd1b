"""MATLAB files of version 5 to 7.2, read without compiled code: a damaged file is an error and never a crash.

Only what data sets and splits are made of is read: matrices of numbers, truth values and characters, sparse matrices,
and cells of these. Other variables (structures, objects) are stepped over. Every declared size is checked against the
bytes that are there and against a limit before anything of that size is made.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.limits import Allowance

__all__ = ["read_variables"]

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
#: type of a data element -> what its numbers are
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL, _CHARACTERS, _SPARSE = 1, 4, 5
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX, _LOGICAL = 0x08, 0x02
_MOST_DIMENSIONS = 32


class DamagedError(ValueError):
    """The bytes are not what the format allows; the message says what was met."""


def read_variables(data: bytes, where: str, allowance: Allowance) -> dict[str, Any]:
    """Read the variables of a file by name.

    Parameters
    ----------
    data : bytes
        The content of the file.
    where : str
        What errors call the file.
    allowance : Allowance
        How many bytes the variables may take.

    Returns
    -------
    dict
        Arrays with at least two dimensions, in MATLAB's order; a cell is an array of objects, a row of characters a
        str. None stands for a variable of a kind that is not read.
    """
    if len(data) < _HEADER or data[126:128] not in (b"IM", b"MI"):
        raise DataError(f"{where} is damaged or not a MATLAB file of version 5 to 7.2; save it again with -v7")
    order = "<" if data[126:128] == b"IM" else ">"
    version = int.from_bytes(data[124:126], "little" if order == "<" else "big")
    if version == 0x0200:
        raise DataError(f"{where} is a MATLAB 7.3 (HDF5) file; save it again in MATLAB with -v7")
    try:
        if version != 0x0100:
            raise DamagedError(f"its version is {version:#06x}")
        return dict(_Reader(order, allowance).variables(memoryview(data)[_HEADER:]))
    except (DamagedError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{where} is damaged or not a MATLAB file ({error})") from error


class _Reader:
    """Elements of one byte order."""

    def __init__(self, order: str, allowance: Allowance) -> None:
        self._order = order
        self._word = np.dtype(f"{order}u4")
        self._allowance = allowance

    def variables(self, data: memoryview) -> Iterator[tuple[str, Any]]:
        """Names and values of the elements of a file."""
        for kind, content in self._elements(data):
            if kind == _COMPRESSED:
                content = memoryview(self._inflated(content))
                kind, content = self._only(content)
            if kind != _MATRIX:
                raise DamagedError(f"an element of type {kind} stands where a variable is expected")
            yield self._matrix(content, inner=False)

    def _inflated(self, content: memoryview) -> bytes:
        stream = zlib.decompressobj()
        parts = []
        rest: bytes | memoryview = content
        while not stream.eof:
            part = stream.decompress(rest, 1 << 24)
            if not part and not stream.eof:
                raise DamagedError("a compressed variable ends too early")
            self._allowance.take(len(part))
            parts.append(part)
            rest = stream.unconsumed_tail
        return b"".join(parts)

    def _only(self, data: memoryview) -> tuple[int, memoryview]:
        found = list(self._elements(data))
        if len(found) != 1:
            raise DamagedError(f"{len(found)} elements stand where one is expected")
        return found[0]

    def _elements(self, data: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Type and content of the elements that follow each other in some bytes."""
        at = 0
        while at < len(data):
            if len(data) - at < 8:
                raise DamagedError("the last element is cut off")
            kind, size = np.frombuffer(data, self._word, 2, at).tolist()
            start = at + 8
            if kind >> 16:  # a small element holds up to four bytes beside its type
                kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
                if size > 4:
                    raise DamagedError(f"a small element declares {size} bytes")
                at += 8
            else:
                at = start + size + (0 if kind == _COMPRESSED else -size % 8)
            if start + size > len(data):
                raise DamagedError(f"an element declares {size} bytes where {len(data) - start} are left")
            yield kind, data[start : start + size]

    def _matrix(self, content: memoryview, inner: bool) -> tuple[str, Any]:
        """Name and value of a variable or a cell."""
        if not len(content):
            return "", np.empty((0, 0))
        elements = self._elements(content)
        flags = self._numbers(*_next(elements))
        shape = tuple(self._numbers(*_next(elements)).tolist())
        if len(flags) != 2 or flags.dtype.kind != "u":
            raise DamagedError("a variable does not begin with its flags")
        if not 2 <= len(shape) <= _MOST_DIMENSIONS or min(shape) < 0:
            raise DamagedError(f"a variable declares the shape {shape}")
        name = bytes(_next(elements)[1]).decode("ascii")
        kind, marks = int(flags[0]) & 0xFF, int(flags[0]) >> 8
        if kind == _CELL and not inner:
            return name, self._cells(elements, shape)
        if kind == _CHARACTERS:
            return name, self._characters(elements, shape)
        if kind == _SPARSE and not marks & _COMPLEX:
            return name, self._sparse(elements, shape)
        if kind in _NUMERIC_CLASSES and not marks & _COMPLEX:
            values = self._numbers(*_next(elements))
            if len(values) != math.prod(shape):
                raise DamagedError(f"a matrix of shape {shape} has {len(values)} numbers")
            return name, (values != 0 if marks & _LOGICAL else values).reshape(shape, order="F")
        return name, None

    def _cells(self, elements: Iterator[tuple[int, memoryview]], shape: tuple[int, ...]) -> NDArray[Any]:
        values = []
        for kind, content in elements:
            if kind != _MATRIX:
                raise DamagedError(f"an element of type {kind} stands where a cell is expected")
            values.append(self._matrix(content, inner=True)[1])
        if len(values) != math.prod(shape):
            raise DamagedError(f"a cell array of shape {shape} has {len(values)} cells")
        cells = np.empty(len(values), dtype=object)
        cells[:] = values
        return cells.reshape(shape, order="F")

    def _characters(self, elements: Iterator[tuple[int, memoryview]], shape: tuple[int, ...]) -> str | None:
        kind, content = _next(elements)
        if kind not in _TEXT:
            raise DamagedError(f"characters have the type {kind}")
        codec = _TEXT[kind]
        text = bytes(content).decode(codec if codec[-1] == "8" or kind < 3 else f"{codec}-{'lb'[self._order == '>']}e")
        return text if len(shape) == 2 and shape[0] == 1 else None

    def _sparse(self, elements: Iterator[tuple[int, memoryview]], shape: tuple[int, ...]) -> NDArray[Any]:
        """A dense matrix; three elements give row numbers, where each column starts, and the values."""
        rows, starts, values = (self._numbers(*_next(elements)) for _ in range(3))
        if (
            len(shape) != 2
            or len(starts) != shape[1] + 1
            or rows.dtype.kind not in "iu"
            or starts.dtype.kind not in "iu"
        ):
            raise DamagedError(f"a sparse matrix of shape {shape} has the starts of {len(starts) - 1} columns")
        edges = starts.astype(np.int64)
        sizes = edges[1:] - edges[:-1]
        used = int(starts[-1])
        if starts[0] != 0 or (sizes < 0).any() or used > min(len(rows), len(values)):
            raise DamagedError("the columns of a sparse matrix do not follow each other")
        if used and not 0 <= int(rows[:used].min()) <= int(rows[:used].max()) < shape[0]:
            raise DamagedError(f"a sparse matrix of shape {shape} has a value in a row that it does not have")
        self._allowance.take(8 * math.prod(shape))
        dense = np.zeros(shape)
        np.add.at(dense, (rows[:used], np.repeat(np.arange(shape[1]), sizes)), values[:used])
        return dense

    def _numbers(self, kind: int, content: memoryview) -> NDArray[Any]:
        if kind not in _NUMBERS:
            raise DamagedError(f"an element of type {kind} stands where numbers are expected")
        dtype = np.dtype(self._order + _NUMBERS[kind])
        if len(content) % dtype.itemsize:
            raise DamagedError(f"{len(content)} bytes are no whole number of {dtype.name}")
        return np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))


def _next(elements: Iterator[tuple[int, memoryview]]) -> tuple[int, memoryview]:
    found = next(elements, None)
    if found is None:
        raise DamagedError("a variable ends too early")
    return found
