"""Rows of many files as pieces of whole bags, in order, cut to a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.lists import arrow_ids, edges, whole
from mipl.scanning.files import ScanFile
from mipl.scanning.layout import Layout
from mipl.scanning.rows import ParquetRows, Rows
from mipl.scanning.selection import Selection

__all__ = ["Part", "Piece", "cut", "read_pieces"]

#: Instances of one table that is read; small against a chunk, large against the cost of a call.
_TABLE_INSTANCES = 65_536


class Part(NamedTuple):
    """Some rows of a file: from `start` to `stop`; the first row of the file is row `offset` of the scan."""

    file: ScanFile
    start: int
    stop: int
    offset: int


@dataclass(frozen=True)
class Piece:
    """Whole bags of one file; the last bag may have gone on in the next.

    Parameters
    ----------
    file : ScanFile
        Where the bags begin.
    table : pyarrow.Table
        Their rows.
    ids : (m,) array
        Their ids.
    first : (m,) int64
        The row of the scan at which each bag begins.
    rows : (m,) int64
        The rows of each bag.
    sizes : (m,) int64
        The instances of each bag; as `rows` where the instances were not read.
    """

    file: ScanFile
    table: pa.Table
    ids: NDArray[Any]
    first: NDArray[np.int64]
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def bags(self, start: int, stop: int) -> Piece:
        """The bags from `start` to `stop`."""
        edge = np.concatenate([[0], np.cumsum(self.rows)])
        return Piece(
            self.file,
            self.table.slice(edge[start], edge[stop] - edge[start]),
            *(values[start:stop] for values in (self.ids, self.first, self.rows, self.sizes)),
        )

    def keep(self, mask: NDArray[np.bool_]) -> Piece:
        """The bags of a mask (m,)."""
        if mask.all():
            return self
        table = self.table.filter(pa.array(np.repeat(mask, self.rows)))
        return Piece(self.file, table, *(v[mask] for v in (self.ids, self.first, self.rows, self.sizes)))


def read_pieces(
    parts: Iterable[Part],
    layout: Layout,
    selection: Selection,
    *,
    what: str = "all",
    at_once: int = _TABLE_INSTANCES,
) -> Iterator[Piece]:
    """The selected bags of parts of files, in order.

    Parameters
    ----------
    parts : iterable of Part
        In the order of the scan; a bag that a part ends in goes on in the next one.
    layout : Layout
        What the columns are.
    selection : Selection
        Which bags are meant.
    what : str, default="all"
        The columns that are read: ``"all"``, ``"bags"`` (ids and features), ``"labels"`` (all but the features) or
        ``"ids"``.
    at_once : int, default=65536
        About how many instances are read at a time.
    """
    tables = _tables(parts, layout, selection, what, min(at_once, _TABLE_INSTANCES))
    pieces = _nested(tables, layout) if layout.instances is not None else _long(tables)
    for piece in pieces:
        if not selection:
            yield piece
            continue
        kept = piece.keep(_selected(piece, selection))
        if len(kept.ids):
            yield kept


def cut(pieces: Iterable[Piece], instances: int) -> Iterator[list[Piece]]:
    """Pieces of at most so many instances together, but at least one bag; where they end depends on the bags alone."""
    waiting: list[Piece] = []
    room = instances
    for piece in pieces:
        start, ends = 0, np.cumsum(piece.sizes)
        while start < len(ends):
            done = ends[start - 1] if start else 0
            stop = int(np.searchsorted(ends, done + room, side="right"))
            if stop == start and not waiting:
                stop += 1  # a bag that is too large comes alone
            if stop > start:
                waiting.append(piece.bags(start, stop))
                room -= int(ends[stop - 1] - done)
                start = stop
            if start < len(ends) or room <= 0:
                yield waiting
                waiting, room = [], instances
    if waiting:
        yield waiting


class _Read(NamedTuple):
    file: ScanFile
    table: pa.Table
    row: int  #: of the scan
    bag: str | None


def _tables(parts: Iterable[Part], layout: Layout, selection: Selection, what: str, at_once: int) -> Iterator[_Read]:
    for part in parts:
        with part.file.open() as rows:
            if part.stop <= part.start:
                continue
            bag = layout.roles(rows, part.file.path)["bag"]
            columns = _columns(rows, part.file, layout, selection, what, bag)
            sizes = _rows_at_once(rows, layout, what, at_once)
            groups = rows.may_hold(selection.condition) if selection.conditions else range(len(rows.groups))
            for start, table in rows.tables(columns, part.start, part.stop, sizes.__getitem__, groups):
                yield _Read(part.file, table, part.offset + start, bag)


def _columns(
    rows: Rows, file: ScanFile, layout: Layout, selection: Selection, what: str, bag: str | None
) -> Sequence[str]:
    columns = {bag} if bag is not None else set()
    if what == "all":
        columns |= set(layout.read_columns(rows, file.path))
    elif what == "labels":
        columns |= set(layout.read_columns(rows, file.path)) - set(layout.feature_columns)
    elif what == "bags":
        columns |= set(layout.feature_columns)
    if selection.conditions:
        columns |= set(layout.bag_columns(rows))
    if selection.sides and "group" in rows.schema.names:
        columns.add("group")
    if not columns & set(rows.schema.names):  # rows are counted by a column
        columns.add(rows.schema.names[0])
    missing = [name for name in columns if name not in rows.names]
    if missing:
        raise DataError(f"{file.path} has no column {missing[0]!r}, which the first file has")
    return sorted(columns)


def _rows_at_once(rows: Rows, layout: Layout, what: str, at_once: int) -> list[int]:
    """How many rows of each group are read at a time; a record batch of Arrow is in memory as a whole anyway."""
    read = what in ("all", "bags") and isinstance(rows, ParquetRows)
    if not read or layout.instances is None or layout.instances not in rows.schema.names:
        return [at_once] * len(rows.groups)
    return [
        max(1, at_once * count // max(1, instances))
        for count, instances in zip(rows.groups, rows.instances_of(layout.instances, layout.width), strict=True)
    ]


def _nested(tables: Iterable[_Read], layout: Layout) -> Iterator[Piece]:
    """Every row is a bag."""
    for file, table, row, bag in tables:
        rows = np.ones(table.num_rows, dtype=np.int64)
        first = row + np.arange(table.num_rows)
        if bag is None:
            table = table.append_column("bag_id", pa.array(first))
        with border(file.path, "a file of bags"):
            ids = _ids(file, whole(table, bag or "bag_id"), row)
            sizes = rows
            if layout.instances is not None and layout.instances in table.column_names:
                column = whole(table, layout.instances)
                sizes = np.diff(edges(column)) if not column.null_count else rows  # reading it names the bag
        yield Piece(file, table, ids, first, rows, sizes)


def _long(tables: Iterable[_Read]) -> Iterator[Piece]:
    """Every row is an instance; the last bag of a table waits for the next table."""
    held: Piece | None = None
    for file, table, row, bag in tables:
        assert bag is not None  # a layout of instances has one
        with border(file.path, "a file of instances"):
            piece = _runs(file, table, row, bag)
        if held is not None and _goes_on(held, piece):
            more = int(piece.rows[0])
            joined = pa.concat_tables([held.table, table.slice(0, more)], promote_options="permissive")
            held = replace(held, table=joined, rows=held.rows + more, sizes=held.sizes + more)
            if len(piece.ids) == 1:
                continue
            piece = piece.bags(1, len(piece.ids))
        if held is not None:
            yield held
        if len(piece.ids) > 1:
            yield piece.bags(0, len(piece.ids) - 1)
        held = piece.bags(len(piece.ids) - 1, len(piece.ids))
    if held is not None:
        yield held


def _runs(file: ScanFile, table: pa.Table, row: int, bag: str) -> Piece:
    column = whole(table, bag)
    _check_ids(file, column, row, blank=True)
    changes = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    rows = np.diff(np.concatenate([starts, [len(column)]]))
    return Piece(file, table, _ids(file, column.take(pa.array(starts)), row), row + starts, rows, rows)


def _goes_on(held: Piece, piece: Piece) -> bool:
    return str(held.ids[0]) == str(piece.ids[0]) and int(held.first[0] + held.rows[0]) == int(piece.first[0])


def _ids(file: ScanFile, column: pa.Array, row: int) -> NDArray[Any]:
    """Bag ids (m,) as integers or text."""
    _check_ids(file, column, row)
    return arrow_ids(file.path, column)


def _check_ids(file: ScanFile, column: pa.Array, row: int, blank: bool = False) -> None:
    missing = pc.fill_null(pc.equal(column, ""), True) if blank and not pa.types.is_integer(column.type) else None
    missing = pc.is_null(column) if missing is None else missing
    if pc.any(missing).as_py():
        at = pc.index(missing, True).as_py()
        raise DataError(f"{file.path}: row {row + at} of the scan has no bag id; name its bag or leave it out")


def _selected(piece: Piece, selection: Selection) -> NDArray[np.bool_]:
    """Which bags (m,) of a piece are meant."""
    starts = np.concatenate([[0], np.cumsum(piece.rows)[:-1]])
    rows = selection.rows(piece.table, piece.file.path)
    agree = np.add.reduceat(rows, starts)
    odd = np.flatnonzero((agree > 0) & (agree < piece.rows))
    if len(odd):
        raise DataError(
            f"{piece.file.path}: the filter holds for some rows of bag {piece.ids[odd[0]].item()!r} and not for others;"
            " filter by columns that belong to the whole bag"
        )
    names = piece.ids
    if selection.sides and "group" in piece.table.column_names:
        names = np.array(whole(piece.table, "group").take(pa.array(starts)).to_pylist(), dtype=object)
    return (agree > 0) & selection.keys(names)
