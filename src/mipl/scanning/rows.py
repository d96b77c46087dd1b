"""Rows of Parquet and Arrow files, by range and column, in tables of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from mipl.io.lists import depth, edges, whole
from mipl.io.parquet import open_parquet
from mipl.io.tabular import metadata

__all__ = ["ArrowRows", "ParquetRows", "Rows"]

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
