"""Compressed files: which suffixes name them, and their content as a stream."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["COMPRESSED", "decompressed", "file_format", "open_decompressed"]

#: suffix -> the first bytes of such a file
COMPRESSED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
_OPENERS: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def file_format(path: Path) -> tuple[str, str]:
    """The suffix that names the format, and that of the compression: ``.csv`` and ``.gz``.

    >>> file_format(Path("a.CSV.gz")), file_format(Path("b.parquet"))
    (('.csv', '.gz'), ('.parquet', ''))
    """
    last = path.suffix.lower()
    if last in COMPRESSED:
        return Path(path.stem).suffix.lower(), last
    return last, ""


def open_decompressed(path: Path) -> BinaryIO:
    """Open a file to read what it holds, decompressed where its suffix says that it is compressed."""
    compression = file_format(path)[1]
    if compression == ".zst":
        return decompressed(path.open("rb"), compression)
    stream: BinaryIO = _OPENERS[compression](path, "rb")
    return stream


def decompressed(file: BinaryIO, compression: str) -> BinaryIO:
    """The content of an open compressed file as a stream."""
    stream: BinaryIO
    if compression == ".zst":
        import pyarrow as pa

        # A buffer, since streams of Arrow have no lines.
        stream = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"))
    else:
        stream = _OPENERS[compression](file)
    return stream
