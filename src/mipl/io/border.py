"""The border between files and the program: how they are opened, and what is wrong with them, told in one line.

Readers check what they take for granted and say what is wrong, one `Problem` each. What a library raises on a damaged
file becomes a `DataError` here; its cause is kept for a bug report.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

from mipl.errors import DataError, MIPLError

__all__ = [
    "COMPRESSED",
    "Problem",
    "border",
    "decompressed",
    "file_format",
    "first_line",
    "no_such_file",
    "open_decompressed",
]


@contextmanager
def border(where: str, kind: str = "data") -> Iterator[None]:
    """Turn every error of the block that is not one of mipl's into a `DataError` of one line.

    Parameters
    ----------
    where : str
        What the error calls the file.
    kind : str, default="data"
        What the file should be: ``"a Parquet file"``.
    """
    try:
        yield
    except MIPLError:
        raise
    except MemoryError as error:
        raise DataError(f"{where} needs more memory than there is ({first_line(error)})") from error
    except Exception as error:
        told = f"{type(error).__name__}: {first_line(error)}"
        raise DataError(f"{where} is damaged or not {kind} ({told})") from error


def no_such_file(path: Path, what: str = "file") -> DataError:
    """The error for a file that is not there, with the name in its folder that is nearest."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        names = []
    close = get_close_matches(path.name, names, n=1, cutoff=0.7)
    return DataError(f"no such {what}: {path}" + (f"; did you mean {str(path.parent / close[0])!r}?" if close else ""))


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its name."""
    try:
        text = str(error).strip()
    except Exception:  # Arrow quotes bytes that are no text
        text = ""
    return text.splitlines()[0][:300] if text else type(error).__name__


@dataclass(frozen=True)
class Problem:
    """Something in a data set that a person should know.

    Parameters
    ----------
    kind : str
        A short name, such as ``"missing value"``.
    severity : str
        ``"error"`` stops a fit, ``"warning"`` is likely a mistake, ``"note"`` is worth knowing.
    where : str
        File, line, column and bag, as far as they are known.
    message : str
        What is wrong.
    remedy : str, default=""
        The argument, option or change that mends it.
    """

    kind: str
    severity: str
    where: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}; {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)


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
