"""Checksums of whole files, kept inside them, so that a flipped bit is an error and not other data.

Parquet and Arrow files end in a footer, its length and a magic word, and readers find everything from there. So a block
of 64 bytes between the data and the footer disturbs nobody: it holds the checksums (CRC-32) of what lies before it and
of what follows. Any program that writes the file anew leaves the block out, and the file is then one of a foreigner.

Text has a first line of its own where mipl needs one; the checksum of what it says and of all lines below stands in it
under ``crc32``.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from mipl.errors import DataError

__all__ = ["check_rest", "check_seal", "crc32_from", "crc32_of", "seal"]

_BLOCK = 64  #: a multiple of 8, as Arrow wants its footers aligned
_MARK = b"mipl seal of CRC-32 sums"
_LEFT_OF_MARK = 8  #: bytes of the mark in their place that no foreigner has
_TAILS = {b"PAR1": 4, b"ARROW1": 6}
_PIECE = 1 << 20


def seal(path: Path) -> None:
    """Write the block of checksums into a Parquet or Arrow file."""
    with path.open("rb+") as file:
        footer = _footer_start(file)
        assert footer is not None  # the library has just written it
        file.seek(footer)
        tail = file.read()
        file.seek(footer)
        file.write(_block(_crc32(file, 0, footer), zlib.crc32(tail)))
        file.seek(footer + _BLOCK)
        file.write(tail)


def check_seal(file: BinaryIO, where: str, *, footer_only: bool = False) -> None:
    """Refuse a file whose bytes are not those that were sealed; a file without a seal is left alone.

    Parameters
    ----------
    file : binary file
        The open file, which is read from anywhere.
    where : str
        What the error calls the file.
    footer_only : bool, default=False
        Whether only the footer is compared, for a reader that takes a part of the file.
    """
    footer = _footer_start(file)
    if footer is None or footer < _BLOCK:
        return
    file.seek(footer - _BLOCK)
    block = file.read(_BLOCK)
    # Damage to the mark must not make the file a foreigner's: what is left of it tells.
    if sum(a == b for a, b in zip(block, _MARK, strict=False)) < _LEFT_OF_MARK:
        return
    data, tail = struct.unpack_from("<II", block, len(_MARK))
    end = file.seek(0, os.SEEK_END)
    whole = block == _block(data, tail) and _crc32(file, footer, end) == tail
    if not whole or not (footer_only or _crc32(file, 0, footer - _BLOCK) == data):
        raise _changed(where, "copy it again, or pass verify=False to read what is left of it")


def crc32_of(data: bytes | memoryview, extra: dict[str, Any]) -> str:
    """The checksum of the metadata and the rows of a text file, as eight hexadecimal digits."""
    return f"{zlib.crc32(data, _metadata_crc32(extra)):08x}"


def crc32_from(file: BinaryIO, start: int, extra: dict[str, Any]) -> str:
    """The same, of the rows of an open file from `start` to its end."""
    return f"{_crc32(file, start, file.seek(0, os.SEEK_END), _metadata_crc32(extra)):08x}"


def _metadata_crc32(extra: dict[str, Any]) -> int:
    own = {key: value for key, value in extra.items() if key != "crc32"}
    return zlib.crc32(json.dumps(own, sort_keys=True).encode())


def check_rest(file: BinaryIO, extra: dict[str, Any], where: str) -> None:
    """Compare what follows in a text file with the checksum in its first line, where there is one."""
    expected = extra.get("crc32")
    if expected is None:
        return
    found = _metadata_crc32(extra)
    while piece := file.read(_PIECE):
        found = zlib.crc32(piece, found)
    if f"{found:08x}" != expected:
        raise _changed(
            where, 'if you edited it, take "crc32" out of its first line, or pass verify=False (--no-verify)'
        )


def _changed(where: str, remedy: str) -> DataError:
    return DataError(f"{where} was changed after mipl wrote it (its checksum does not match); {remedy}")


def _block(data: int, tail: int) -> bytes:
    return (_MARK + struct.pack("<II", data, tail)).ljust(_BLOCK, b"\0")


def _footer_start(file: BinaryIO) -> int | None:
    """Where the footer of a Parquet or Arrow file begins; None for any other file."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 10))
    last = file.read()
    for magic, length in _TAILS.items():
        if last.endswith(magic) and len(last) >= length + 4:
            size = int.from_bytes(last[-length - 4 : -length], "little")
            return end - length - 4 - size if 0 < size <= end - length - 4 else None
    return None


def _crc32(file: BinaryIO, start: int, stop: int, sum_so_far: int = 0) -> int:
    file.seek(start)
    while start < stop:
        piece = file.read(min(_PIECE, stop - start))
        if not piece:
            break
        sum_so_far = zlib.crc32(piece, sum_so_far)
        start += len(piece)
    return sum_so_far
