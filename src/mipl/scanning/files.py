"""The files of a scan: which they are, whether they have changed, and their rows by range and column."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.compression import file_format
from mipl.io.sources import expand
from mipl.scanning.rows import ArrowRows, ParquetRows, Rows
from mipl.visible_text import is_text

__all__ = ["SUFFIXES", "ScanFile", "list_files"]

SUFFIXES = (".parquet", ".pq", ".feather", ".arrow")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class ScanFile:
    """One file as it was when the scan was made.

    Parameters
    ----------
    path : str
        Where it is.
    state : bytes
        A digest of its size and time of change.
    partition : tuple of (str, value), default=()
        The columns that stand in the names of its folders, ``year=2024``.
    """

    path: str
    state: bytes
    partition: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def find(cls, path: str | Path, partition: tuple[tuple[str, Any], ...] | None = None) -> ScanFile:
        """The file as it is now; partitions None reads the names of its folders."""
        if file_format(Path(path)) not in [(suffix, "") for suffix in SUFFIXES]:
            raise DataError(
                f"{path}: a scan reads {', '.join(SUFFIXES)}; convert the file with mipl.load({str(path)!r}).save("
                "'x.parquet'), or where it is larger than memory with DuckDB: COPY (SELECT * FROM 'x.csv' ORDER BY "
                "bag_id) TO 'x.parquet'"
            )
        if not is_text(str(path)):
            raise DataError(f"{path}: the name of a file or folder of a scan must be UTF-8; rename it")
        return cls(str(path), _state(path), _hive(Path(path)) if partition is None else partition)

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """The rows of the file; a file that has changed since the scan was made is an error."""
        if _state(self.path) != self.state:
            raise DataError(f"{self.path} has changed since the scan was made; make the scan again: mipl.scan(...)")
        kind = "Parquet" if Path(self.path).suffix.lower() in (".parquet", ".pq") else "Feather"
        reader = ParquetRows if kind == "Parquet" else ArrowRows
        with border(self.path, f"a {kind} file"), reader(self.path, self.partition) as rows:
            yield rows


def list_files(sources: Any) -> tuple[ScanFile, ...]:
    """The files that a path, a folder, a pattern, a list of these or a `pyarrow.dataset.Dataset` stands for, in order.

    Files of a folder or a pattern are sorted by name.
    """
    if isinstance(sources, pa.dataset.Dataset):
        return _dataset_files(sources)
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    files = expand([Path(each) if isinstance(each, os.PathLike) else each for each in given])
    if not files:
        raise DataError("no files to scan")
    return tuple(ScanFile.find(file) for file in files)


def _dataset_files(dataset: pa.dataset.Dataset) -> tuple[ScanFile, ...]:
    if not isinstance(dataset, pa.dataset.FileSystemDataset):
        raise DataError(f"a scan takes a pyarrow.dataset of files, not a {type(dataset).__name__}")
    system = dataset.filesystem
    if not isinstance(system, pa.fs.LocalFileSystem):
        raise DataError(f"a scan reads local files; this pyarrow.dataset is on {system.type_name}: mount it or copy it")
    if getattr(dataset, "_scan_options", None):
        raise DataError("the pyarrow.dataset has a filter; scan it without, and filter the scan: scan.filter(...)")
    files = [
        ScanFile.find(each.path, tuple(pa.dataset.get_partition_keys(each.partition_expression).items()))
        for each in dataset.get_fragments()
    ]
    if not files:
        raise DataError("the pyarrow.dataset has no files")
    return tuple(sorted(files, key=lambda file: file.path))


def _state(path: str | Path) -> bytes:
    try:
        found = os.stat(path)
    except OSError as error:
        raise DataError(f"no such file: {path}") from error
    return hashlib.blake2b(f"{found.st_size} {found.st_mtime_ns}".encode(), digest_size=4).digest()


def _hive(path: Path) -> tuple[tuple[str, Any], ...]:
    """Values of ``name=value`` in the names of folders; whole numbers are integers, as pyarrow has it."""
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return tuple((name, _value(unquote(text))) for name, text in pairs if name)


def _value(text: str) -> Any:
    if text == _NO_VALUE:
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else text
