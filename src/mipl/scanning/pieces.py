"""Rows of many files as pieces of whole bags: what their columns are, which bags are meant, cut to a bounded size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import border, first_line
from mipl.io.cells import arrow_ids, edges, whole
from mipl.io.columns import find_roles, in_file, taken_names
from mipl.io.options import Columns
from mipl.io.pixels import has_images
from mipl.io.table import from_table, instances_column, metadata
from mipl.scanning.files import ParquetRows, Rows, ScanFile

__all__ = ["Layout", "Part", "Piece", "Selection", "cut", "find_layout", "hash_keys", "read_pieces"]


def hash_keys(ids: Iterable[Any], seed: int, purpose: str) -> NDArray[np.uint64]:
    """A number from 0 to 2**64 - 1 for each id, evenly spread, that depends on the id, the seed and the purpose only.

    >>> hash_keys(["a", "b"], 0, "sample") == hash_keys(["b", "a"], 0, "sample")[::-1]
    array([ True,  True])
    """
    start = hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=8)

    def digest(name: Any) -> bytes:
        each = start.copy()
        each.update(f" {name}".encode())
        return each.digest()

    return np.frombuffer(b"".join(map(digest, ids)), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True)
class _Side:
    """One side of a split: bags whose key is below `bound`, or those at or above it."""

    seed: int
    bound: int
    below: bool


@dataclass(frozen=True)
class Selection:
    """Bags that fulfil all conditions and lie on one side of every split.

    Parameters
    ----------
    conditions : tuple of pyarrow.compute.Expression, default=()
        What `Scan.filter` was given.
    sides : tuple, default=()
        One for each `Scan.split`.
    """

    conditions: tuple[pc.Expression, ...] = ()
    sides: tuple[_Side, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions or self.sides)

    def where(self, condition: pc.Expression) -> Selection:
        """These bags, as far as they fulfil one more condition."""
        return replace(self, conditions=(*self.conditions, condition))

    def split(self, share: float, seed: int) -> tuple[Selection, Selection]:
        """About that share of the bags, and the others."""
        bound = round(share * 2**64)
        first, second = (replace(self, sides=(*self.sides, _Side(seed, bound, below))) for below in (True, False))
        return first, second

    @property
    def condition(self) -> pc.Expression | None:
        """All conditions in one."""
        both = None
        for each in self.conditions:
            both = each if both is None else both & each
        return both

    def rows(self, table: pa.Table, where: str) -> NDArray[np.bool_]:
        """Whether each row of a table fulfils the conditions."""
        condition = self.condition
        if condition is None:
            return np.ones(table.num_rows, dtype=bool)
        try:
            kept = pa.dataset.dataset(table).to_table(columns={"kept": condition})
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise DataError(
                f"{where}: the filter {condition} cannot be applied ({first_line(error)}); it may use the columns "
                f"{', '.join(map(repr, table.column_names))}"
            ) from error
        column = whole(kept, "kept")
        if not pa.types.is_boolean(column.type):
            raise DataError(f"{where}: the filter {condition} gives {column.type}, not true or false")
        mask: NDArray[np.bool_] = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        return mask

    def keys(self, names: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether bags lie on the right side of all splits, by their ids, or their groups where they have any."""
        kept = np.ones(len(names), dtype=bool)
        for depth, side in enumerate(self.sides):
            # A split of a split must not ask the same question again.
            below = hash_keys(names.tolist(), side.seed, f"split {depth}") < np.float64(side.bound)
            kept &= below == side.below
        return kept


#: Rows from which it is decided which columns are features.
_HEAD_ROWS = 1000
#: Columns beside the roles that belong to bags or instances.
_OWN = ("weights", "instance_labels", "instance_label", "group")


@dataclass(frozen=True)
class Layout:
    """How rows become bags.

    Parameters
    ----------
    columns : Columns
        What the user said, with the feature columns by name.
    instances : str or None
        The column of lists of instances where a row is a bag; None where a row is an instance.
    width : int
        Features of an instance in the files.
    n_features : int
        Features d of an instance that are taken.
    feature_names : tuple of str or None
        Their names in the order of all chunks.
    instance_shape : tuple of int
        The shape of an instance.
    name, description : str
        What the data set is called, and where it comes from.
    remark : str or None
        What the columns were taken for, where it is not as usual.
    labelled : bool
        Whether there are candidates.
    """

    columns: Columns
    instances: str | None
    width: int
    n_features: int
    feature_names: tuple[str, ...] | None
    instance_shape: tuple[int, ...]
    name: str
    description: str
    remark: str | None
    labelled: bool

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The columns of the files that hold features."""
        if self.instances is not None:
            return (self.instances,)
        return tuple(self.columns.features or ())

    def roles(self, rows: Rows, path: str) -> dict[str, str | None]:
        """Which column of a file is the bag, the candidates, the label and the instance id."""
        return find_roles(path, rows.names, self.columns, exact=bool(rows.extra))

    def read_columns(self, rows: Rows, path: str) -> list[str]:
        """The columns of a file that a data set needs."""
        own = [name for name in _OWN if name in rows.schema.names]
        return [*filter(None, self.roles(rows, path).values()), *own, *self.feature_columns]

    def bag_columns(self, rows: Rows) -> list[str]:
        """The columns of a file that a filter may ask for: all but the features."""
        return [name for name in rows.names if name not in self.feature_columns]

    def select(self, features: Sequence[str]) -> Layout:
        """The layout with some of the features only."""
        if self.feature_names is None:
            raise DataError("the files have no feature names to select by")
        taken = tuple(taken_names("the scan", self.feature_names, features, "features"))
        wide = self.instances is None and self.feature_columns == self.feature_names
        columns = replace(self.columns, features=list(taken)) if wide else self.columns
        return replace(self, columns=columns, n_features=len(taken), feature_names=taken, instance_shape=(len(taken),))


def find_layout(files: Sequence[ScanFile], columns: Columns) -> Layout:
    """Read the first rows of the first file that has any."""
    if columns.missing == "mean":
        raise DataError("missing='mean' needs all rows at once, so it cannot be had in a scan; use 'drop'")
    for file in files:
        with file.open() as rows:
            if has_images(rows.schema):
                raise DataError(
                    f"{file.path} has a column of images, which a scan does not decode; mipl.load(...) does, and its "
                    ".save('x.parquet') writes pixels, which can be scanned"
                )
            if not sum(rows.groups):
                continue
            columns = in_file(columns, rows.names)
            roles = find_roles(file.path, rows.names, columns, exact=bool(rows.extra))
            named = {*(v for v in roles.values() if v), *_named(columns.features)}
            names = [name for name in rows.names if name in rows.schema.names or name in named]
            _check_bag(rows, roles["bag"], file.path)
            head = _head(rows, names, 1)
            instances = instances_column(head, file.path, columns, roles)
            bag = roles["bag"]
            # A row may also be an instance that is itself an image; "instances" is what mipl writes, one row per bag.
            repeated = instances not in (None, "instances") and bag is not None and _repeats(rows, bag)
            if instances is None or repeated:
                instances, head = None, _head(rows, names, _HEAD_ROWS)
            return _layout(head, file, columns, instances)
    raise DataError(f"{files[0].path}: the files have no rows: the data set is empty")


def _head(rows: Rows, names: Sequence[str], count: int) -> pa.Table:
    return pa.concat_tables([table for _, table in rows.tables(names, 0, count, lambda _: count)])


def _repeats(rows: Rows, bag: str) -> bool:
    ids = _head(rows, [bag], _HEAD_ROWS)
    return bool(len(ids[bag].unique()) < ids.num_rows)


def _layout(head: pa.Table, file: ScanFile, columns: Columns, instances: str | None) -> Layout:
    raw = from_table(head, file.path, columns, metadata(head, file.path), nested=instances is not None)
    return Layout(
        columns=replace(columns, features=list(raw.roles.features), ignore=None),
        instances=instances,
        width=raw.values.shape[1],
        n_features=raw.values.shape[1],
        feature_names=None if raw.feature_names is None else tuple(raw.feature_names),
        instance_shape=tuple(raw.instance_shape or (raw.values.shape[1],)),
        name=Path(file.path).stem if raw.name is None else raw.name,
        description=raw.description,
        remark=None if raw.roles.usual else f"{file.path}: {raw.roles.remark()}",
        labelled=raw.candidates is not None,
    )


def _check_bag(rows: Rows, bag: str | None, path: str) -> None:
    if bag is None or bag not in rows.schema.names:
        return
    kind: Any = rows.schema.field(bag).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{path}: the bags {bag!r} are of type {kind}; a scan needs integers or text, so cast them")


def _named(features: str | Sequence[str] | None) -> list[str]:
    return [] if features is None else [features] if isinstance(features, str) else list(features)


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
