"""The files of a scan: which they are, whether they have changed, and their rows by range and column."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from mipl.errors import DataError
from mipl.io.border import border, file_format
from mipl.io.cells import depth, edges, whole
from mipl.io.parquet import open_parquet
from mipl.io.sources import expand
from mipl.io.table import metadata
from mipl.visible_text import is_text

__all__ = ["SUFFIXES", "ArrowRows", "ParquetRows", "Rows", "ScanFile", "list_files"]

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


#: Bytes of a column chunk that are read at a time, so that a piece of a row group does not cost the whole of it.
_BUFFER_BYTES = 4 << 20


class Rows:
    """The rows of one open file, in groups (row groups of Parquet, record batches of Arrow).

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns of the file.
    groups : list of int
        The rows of each group.
    partition : tuple of (str, value)
        Columns that are the same in all rows, from the names of the folders.
    """

    schema: pa.Schema
    groups: list[int]

    def __init__(self, path: str, partition: tuple[tuple[str, Any], ...]) -> None:
        self.path = path
        self.partition = partition

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """The columns of the file and of its folders' names."""
        return [*self.schema.names, *(name for name, _ in self.partition if name not in self.schema.names)]

    @cached_property
    def extra(self) -> dict[str, Any]:
        """What mipl wrote beside the columns."""
        return metadata(pa.table({}, schema=pa.schema([], self.schema.metadata)), self.path)

    def instances_of(self, column: str, n_features: int) -> list[int]:
        """The instances in each group, where `column` is a list of instances with so many features."""
        raise NotImplementedError

    def may_hold(self, condition: pc.Expression) -> set[int]:
        """The groups in which the statistics of the file do not rule out a condition."""
        return set(range(len(self.groups)))

    def tables(
        self,
        columns: Sequence[str],
        start: int,
        stop: int,
        rows_at_once: Callable[[int], int],
        groups: Collection[int] | None = None,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Tables of the rows from `start` to `stop`, each with the number of its first row.

        Parameters
        ----------
        columns : sequence of str
            The columns that are read.
        start, stop : int
            Rows of the file.
        rows_at_once : callable
            From the number of a group to the rows of one table.
        groups : collection of int, default=None
            The groups that are read; None for all.
        """
        own = [name for name in self.schema.names if name in columns]
        first = 0
        for group, count in enumerate(self.groups):
            low, high = max(start - first, 0), min(stop - first, count)
            if low < high and (groups is None or group in groups):
                at = 0
                for batch in self._batches(group, own, rows_at_once(group)):
                    a, b = max(low - at, 0), min(high - at, batch.num_rows)
                    if a < b:
                        yield first + at + a, self._table(batch.slice(a, b - a), columns)
                    at += batch.num_rows
                    if at >= high:
                        break
            first += count

    def _batches(self, group: int, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _table(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Table:
        table = pa.Table.from_batches([batch])
        for name, value in self.partition:
            if name in columns and name not in self.schema.names:
                table = table.append_column(name, pa.array([value] * batch.num_rows))
        return table.replace_schema_metadata(self.schema.metadata)


class ParquetRows(Rows):
    """The rows of a Parquet file."""

    def __init__(self, path: str, partition: tuple[tuple[str, Any], ...]) -> None:
        super().__init__(path, partition)
        self._file = open_parquet(path, _BUFFER_BYTES)
        self.schema = self._file.schema_arrow
        found = self._file.metadata
        self.groups = [found.row_group(g).num_rows for g in range(found.num_row_groups)]

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def instances_of(self, column: str, n_features: int) -> list[int]:
        """From the footer alone: the values of the column over those of one instance."""
        # Records have a leaf for each feature, lists of numbers one for all.
        per_instance = 1 if pa.types.is_struct(self.schema.field(column).type.value_type) else n_features
        paths = [self._file.schema.column(j).path for j in range(len(self._file.schema))]
        leaf = next(j for j, path in enumerate(paths) if path.startswith(f"{column}."))
        found = self._file.metadata
        return [found.row_group(g).column(leaf).num_values // per_instance for g in range(found.num_row_groups)]

    def may_hold(self, condition: pc.Expression) -> set[int]:
        """From the statistics of the row groups and the names of the folders."""
        fixed = [pc.field(name) == pa.scalar(value) for name, value in self.partition if value is not None]
        known = pc.scalar(True)
        for each in fixed:
            known = known & each
        fragment = pa.dataset.ParquetFileFormat().make_fragment(
            self.path, pa.fs.LocalFileSystem(), partition_expression=known
        )
        fields = [
            pa.field(name, pa.array([value]).type) for name, value in self.partition if name not in self.schema.names
        ]
        try:
            subset = fragment.subset(filter=condition, schema=pa.schema([*self.schema, *fields]))
        except (pa.ArrowException, TypeError):  # a condition that cannot be: its rows say so better
            return super().may_hold(condition)
        return {group.id for group in subset.row_groups}

    def _batches(self, group: int, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self._file.iter_batches(
            batch_size=rows, row_groups=[group], columns=columns
        )
        return batches


class ArrowRows(Rows):
    """The rows of a Feather or Arrow file, or of an Arrow stream."""

    def __init__(self, path: str, partition: tuple[tuple[str, Any], ...]) -> None:
        super().__init__(path, partition)
        self._source = pa.memory_map(path)
        self._is_file = self._source.read(6) == b"ARROW1"
        self.schema = self._reader(None).schema
        self._stream: Iterator[tuple[int, pa.RecordBatch]] = iter(())
        self._next: tuple[list[str], int] = ([], 0)  # the columns and the record batch that `_stream` gives next

    @cached_property
    def groups(self) -> list[int]:  # type: ignore[override]
        """The rows of each record batch, from the smallest column."""
        by_depth = sorted(self.schema.names, key=lambda name: depth(self.schema.field(name).type))
        return [batch.num_rows for batch in self._record_batches(by_depth[:1])]

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def instances_of(self, column: str, n_features: int) -> list[int]:
        """From the lengths of the lists; compressed record batches are expanded for it, one at a time."""
        tables = (pa.Table.from_batches([batch]) for batch in self._record_batches([column]))
        return [int(np.diff(edges(whole(table, column))).sum()) for table in tables]

    def _reader(self, columns: Sequence[str] | None) -> Any:
        self._source.seek(0)
        fields = None if columns is None else [self.schema.names.index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return (pa.ipc.open_file if self._is_file else pa.ipc.open_stream)(self._source, options=options)

    def _record_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        reader = self._reader(columns)
        if self._is_file:
            return (reader.get_batch(i) for i in range(reader.num_record_batches))
        return iter(reader)

    def _batches(self, group: int, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        if self._is_file:
            batch = self._reader(columns).get_batch(group)
        else:
            if self._next[0] != columns or self._next[1] > group:
                self._stream = enumerate(self._record_batches(columns))
            batch = next(batch for i, batch in self._stream if i == group)
            self._next = (columns, group + 1)
        batch.validate(full=True)  # offsets of lists that point outside would read other memory
        return (batch.slice(i, rows) for i in range(0, batch.num_rows, rows))
