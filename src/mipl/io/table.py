"""From an Arrow table to bags: the one road of all tables, one row per instance or one row per bag.

Files, frames and the pieces of a scan all come through `from_table`. Features are columns of numbers, or one column of
lists; where a row is a bag, its instances are a list of lists of numbers or a list of records.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import Problem, border
from mipl.io.cells import (
    arrow_ids,
    as_numbers,
    candidates_or_problem,
    depth,
    edges,
    is_list,
    is_number_type,
    label_cell,
    map_labels,
    numbers_in_text,
    reads_as_number,
    restore_numbers,
    vectors,
    whole,
    whole_number,
    with_lists,
)
from mipl.io.columns import (
    Roles,
    absent,
    by_reason,
    find_roles,
    in_file,
    likely_columns,
    listed_names,
    non_feature,
    pick,
    taken_names,
    unknown_to_model,
)
from mipl.io.options import Columns
from mipl.io.pixels import with_pixels
from mipl.io.raw import RawBags
from mipl.rows import group_rows

__all__ = ["check_metadata", "from_table", "instances_column", "metadata", "read_metadata"]

_SHOWN = 5
#: A text column is one of numbers with some cells that are none if at least this share of its cells are numbers.
_NUMERIC_SHARE = 0.5
_SAMPLE_CELLS = 200
_AS_NUMBERS = "text: numbers with "  #: how the reason begins where a column of text looks like numbers
_WRITTEN_NUMBERS = {
    what: re.compile(pattern)
    for what, pattern in {
        "a decimal comma": r"[+-]?\d*,?\d+",
        "a decimal point": r"[+-]?\d*\.?\d+",
        "marks between thousands": r"[+-]?(\d{1,3}([.,' ]\d{3})+([.,]\d+)?|\d+([.,]\d+)?)",
        "a unit": r"[+-]?\d*[.,]?\d+(?P<unit>\s*%|\s+[^\W\d]{1,4}|\s*°\w?|\s*[µmk]?(m|s|g|Hz|dB))",
    }.items()
}


def from_table(
    table: pa.Table,
    where: str,
    columns: Columns,
    extra: dict[str, Any] | None = None,
    *,
    nested: bool | None = None,
    lines: NDArray[np.int64] | None = None,
    text: bool = False,
    decimal: str = ".",
) -> RawBags:
    """Read bags from a table with one row per bag or one row per instance, whose rows may lie anywhere.

    It is one row per bag where a column holds lists of instances and no bag comes twice.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    extra : dict, default=None
        What mipl stores beside the columns; None for files of others.
    nested : bool, default=None
        Whether a row is a bag, where that is known; None decides by the table.
    lines : (n,) int, default=None
        The line of each row, counted from 1; None where the file has no lines.
    text : bool, default=False
        Whether the file holds text only, so that ``7`` may be the integer or the name.
    decimal : str, default="."
        The decimal mark in columns of text.
    """
    with border(where, "a table of bags"):
        return _from_table(table, where, columns, extra or {}, nested, lines, text, decimal)


def _from_table(
    table: pa.Table,
    where: str,
    columns: Columns,
    extra: dict[str, Any],
    nested: bool | None,
    lines: NDArray[np.int64] | None,
    text: bool,
    decimal: str,
) -> RawBags:
    columns = in_file(columns, table.column_names)
    for name, count in Counter(table.column_names).items():
        if count > 1:
            raise DataError(f"{where} has the column {name!r} {count} times; rename one")
    table = _with_class_names(table)
    roles = find_roles(where, table.column_names, columns, exact=bool(extra))
    if table.num_rows == 0:
        raise DataError(f"{where} has no rows: the data set is empty")
    if text:
        table = with_lists(table, where, roles.values())
    pixels = with_pixels(table, where, columns, roles["bag"], nested)
    table = pixels.table
    names = table.column_names
    instances = None if nested is False else instances_column(table, where, columns, roles)
    if instances is not None:
        raw, rows = _rows_of_bags(table, instances, where, roles, extra, lines), None
        _keep_features(raw, columns.model_features)
    else:
        raw, table, rows = _rows_of_instances(table, where, columns, roles, extra, lines, text, decimal)
    _read_labels(raw, table, rows, columns, extra, text)
    if pixels.patch_names is not None:
        raw.instance_ids = pixels.patch_names
        raw.remarks.append(f"{where}: {pixels.remark}")
    raw.column_names = names
    if raw.candidates is None:
        raw.likely = likely_columns(table, roles)
    return raw


def _roles(named: dict[str, str | None]) -> Roles:
    return Roles(named["bag"], named["candidates"], named["label"], named["instance_id"])


# -------------------------------------------------------------------- one row per bag


def _rows_of_bags(
    table: pa.Table,
    instances: str,
    where: str,
    roles: dict[str, str | None],
    extra: dict[str, Any],
    lines: NDArray[np.int64] | None,
) -> RawBags:
    """Bags and their instances from the column `instances`."""
    bag = roles["bag"]
    ids = np.arange(table.num_rows) if bag is None else arrow_ids(where, _without_nulls(where, whole(table, bag)))
    column = whole(table, instances)
    offsets = edges(column)
    lost = column.is_null().to_numpy(zero_copy_only=False) | (np.diff(offsets) == 0)
    if lost.any():
        bag_id = ids[np.flatnonzero(lost)[0]].item()
        raise DataError(f"{where}: bag {bag_id!r} has no instances; leave it out, as a bag has at least one")

    def call(row: int) -> str:
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        return f"{where}: bag {ids[i].item()!r}, instance {row - offsets[i]}"

    def one_per_instance(name: str | None) -> pa.Array | None:
        if name is None or name not in table.column_names:
            return None
        lists = whole(table, name)
        if not is_list(lists.type):
            raise DataError(f"{where}: column {name!r} is {lists.type}; it must be a list with one value per instance")
        differ = np.diff(edges(lists)) != np.diff(offsets)
        differ |= lists.is_null().to_numpy(zero_copy_only=False)
        if differ.any():
            bag_id = ids[np.flatnonzero(differ)[0]].item()
            raise DataError(f"{where}: bag {bag_id!r} does not have one value of {name!r} for each instance")
        return lists.flatten()

    values, shape, fields = vectors(column.flatten(), call)
    instance_ids, labels = one_per_instance(roles["instance_id"]), one_per_instance("instance_labels")
    used = {*roles.values(), instances, "weights", "instance_labels", "group"}
    left_out = {n: "one row per bag has its features in one column" for n in table.column_names if n not in used}
    return RawBags(
        where=where,
        name=extra.get("name"),
        description=extra.get("description", ""),
        values=values,
        offsets=offsets,
        bag_ids=ids,
        candidates=None,
        instance_labels=None if labels is None else _whole_numbers(where, labels, "instance_labels"),
        instance_ids=None if instance_ids is None else np.array(instance_ids.to_pylist()),
        instance_shape=extra.get("instance_shape", shape),
        feature_names=extra.get("feature_names", fields),
        lines=None if lines is None else np.repeat(lines, np.diff(offsets)),
        roles=replace(_roles(roles), features=(instances,), left_out=left_out, in_lists=shape),
    )


def _without_nulls(where: str, ids: pa.Array) -> pa.Array:
    if ids.null_count:
        row = int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{where}: row {row} has no bag id")
    return ids


# -------------------------------------------------------------------- one row per instance


def _rows_of_instances(
    table: pa.Table,
    where: str,
    columns: Columns,
    roles: dict[str, str | None],
    extra: dict[str, Any],
    lines: NDArray[np.int64] | None,
    text: bool,
    decimal: str,
) -> tuple[RawBags, pa.Table, NDArray[np.int64]]:
    """Bags, the rows that name theirs, and which of these each instance is."""
    bag = roles["bag"]
    if bag is None:
        # Where a model says what the features are, candidates may not be asked for.
        missing = ["bag"] if roles["candidates"] or columns.model_features is not None else ["bag", "candidates"]
        raise absent(where, table.column_names, *missing, likely=likely_columns(table, roles))
    numeric = extra.get("bag_id") != "string" and (text or is_number_type(table.schema.field(bag).type))
    ids, of_row = _bag_ids(where, whole(table, bag), text and numeric, numeric)
    table, of_row, lines, nameless = _named_rows(where, table, ids, of_row, lines, bag)
    own = "features" in extra or "feature_names" in extra
    features = Features(table, where, columns, roles, own, decimal, lines)
    order, offsets, bags = group_rows(of_row, len(of_row))
    rows = np.arange(len(of_row)) if order is None else order
    raw = RawBags(
        where=where,
        name=None,
        values=features.values if order is None else features.values[order],
        offsets=offsets,
        bag_ids=ids[bags],
        candidates=None,
        instance_shape=extra.get("instance_shape", features.shape),
        feature_names=features.names,
        lines=None if lines is None else lines[rows],
        problems=[] if nameless is None else [nameless],
        roles=replace(
            _roles(roles),
            features=features.columns,
            left_out=features.left_out,
            in_lists=features.in_lists,
            odd_cells=features.odd_cells,
        ),
    )
    if features.texts:
        position = np.argsort(rows)
        raw.texts = {(int(position[i]), j): value for (i, j), value in features.texts.items()}
    if "feature_names" not in extra and features.names == tuple(f"f{j}" for j in range(len(features.columns))):
        raw.feature_names = None  # the names of features without names
    if "instance_label" in table.column_names:
        labels = whole(table, "instance_label")
        raw.instance_labels = _whole_numbers(where, labels, "instance_label")[rows]
    if roles["instance_id"] is not None:
        raw.instance_ids = as_numbers([str(v) for v in whole(table, roles["instance_id"]).to_pylist()])[rows]
    texts = [name for name, why in features.left_out.items() if why == "text"]
    if texts and columns.features is None and columns.model_features is None and raw.counting_features().all():
        message = (
            f"the text in {listed_names(texts)} is no feature, and what is left, {listed_names(features.columns)}, is "
            "the number of a row in its bag"
        )
        remedy = "turn the text into numbers first, or say what the features are with features=[...] (--features)"
        raw.problems.append(Problem("no features", "error", where, message, remedy))
    return raw, table, rows


def _bag_ids(where: str, column: pa.Array, strip: bool, numeric: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All different bag ids, as integers or text, and which one each row has; -1 where it has none."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    coded = column.dictionary_encode()
    ids = arrow_ids(where, coded.dictionary)
    of_row = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if ids.dtype.kind == "i":
        return ids, of_row
    ids, same = np.unique([value.strip() for value in ids.tolist()] if strip else ids, return_inverse=True)
    blank = int((ids == "").sum())  # sorted, an empty one comes first
    ids, of_row = ids[blank:], np.maximum(np.append(same, -1)[of_row] - blank, -1)
    return as_numbers(ids.tolist()) if numeric else ids, of_row


def _named_rows(
    where: str,
    table: pa.Table,
    ids: NDArray[Any],
    of_row: NDArray[np.int64],
    lines: NDArray[np.int64] | None,
    bag: str,
) -> tuple[pa.Table, NDArray[np.int64], NDArray[np.int64] | None, Problem | None]:
    """The rows that name their bag, and what is wrong with the others.

    Rows in which every cell is empty, as spreadsheets have them at the end, are just left out.
    """
    keep = of_row >= 0
    if keep.all():
        return table, of_row, lines, None
    nameless: list[tuple[str, str]] = []  # the row and a column with a value
    for i in np.flatnonzero(~keep).tolist():
        row = table.slice(i, 1).to_pylist()[0]
        filled = [k for k, v in row.items() if k != bag and v not in (None, "") and v == v]
        if filled:
            nameless.append((f"row {i}" if lines is None else f"line {lines[i]}", filled[0]))
    problem = None
    if nameless:
        first, column = nameless[0]
        others = ", ".join(row for row, _ in nameless[1:_SHOWN])
        rest = f" and {len(nameless) - _SHOWN} more" if len(nameless) > _SHOWN else ""
        message = f"{first} has no {bag}, but a value in the column {column!r}"
        more = f"; {len(nameless) - 1} more: {others}{rest}" if others else ""
        problem = Problem("no bag", "error", where, message + more, "name its bag")
    if not keep.any():
        raise DataError(str(problem) if problem is not None else f"{where} has no rows: the data set is empty")
    return table.filter(pa.array(keep)), of_row[keep], None if lines is None else lines[keep], problem


# -------------------------------------------------------------------- candidates, labels and groups


def _read_labels(
    raw: RawBags,
    table: pa.Table,
    rows: NDArray[np.int64] | None,
    columns: Columns,
    extra: dict[str, Any],
    text: bool,
) -> None:
    """Fill in candidates, labels and groups of `raw`; `rows` are those of its instances, None where a row is a bag."""
    classes = extra.get("classes")
    raw.classes, raw.background = classes, extra.get("background")
    known = None if not classes else set(map(str, classes))
    if raw.roles.candidates is not None:
        entries, at = _one_per_bag(raw, whole(table, raw.roles.candidates), rows, raw.roles.candidates, _cell)
        if rows is None and "weights" in table.column_names:
            given = whole(table, "weights").to_pylist()
            entries = [_weighted(raw, i, *pair) for i, pair in enumerate(zip(entries, given, strict=True))]
        # Where all candidates have weights, a part such as "a:1" is never a name, not even where a class is called so.
        names, printed = () if extra.get("weights") else known, classes is None
        raw.candidates = [
            candidates_or_problem(cell, columns.candidates_sep, printed, raw.bag_place(k), names, raw.problems)
            for cell, k in zip(entries, at, strict=True)
        ]
    if raw.roles.label is not None:
        column = whole(table, raw.roles.label)
        raw.labels, _ = _one_per_bag(raw, column, rows, raw.roles.label, lambda cell: label_cell(cell, known))
    if classes and isinstance(classes[0], int):
        if raw.candidates is not None:
            raw.candidates = [map_labels(entry, whole_number) for entry in raw.candidates]
        raw.labels = None if raw.labels is None else [whole_number(v) for v in raw.labels]
    elif text and classes is None:
        everything = raw.candidates if raw.candidates is not None else [[v] for v in raw.labels or [] if v is not None]
        sets, raw.labels = restore_numbers(everything, raw.labels)
        raw.candidates = None if raw.candidates is None else sets
    if "group" in table.column_names:
        _read_groups(raw, _one_per_bag(raw, whole(table, "group"), rows, "group", label_cell)[0])


def _one_per_bag(
    raw: RawBags,
    column: pa.Array,
    rows: NDArray[np.int64] | None,
    name: str,
    clean: Callable[[Any], Any],
) -> tuple[list[Any], list[int]]:
    """The value of each bag, and the instance that has it; rows agree or are empty, else it is a problem of `raw`."""
    starts, sizes = raw.offsets[:-1], np.diff(raw.offsets)
    if rows is None:
        return [clean(cell) for cell in column.to_pylist()], starts.tolist()
    if pa.types.is_nested(column.type):
        cells, places = column.to_pylist(), np.arange(len(column))
    else:
        coded = column.dictionary_encode()
        cells = coded.dictionary.to_pylist()
        places = coded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False)
    # Cells that differ, by number; -1 where there is nothing.
    values: dict[Any, Any] = {}
    number: dict[Any, int] = {}
    codes = []
    for cell in map(clean, cells):
        key = repr(cell) if isinstance(cell, list | dict) else cell
        codes.append(-1 if cell is None else number.setdefault(key, len(number)))
        values.setdefault(codes[-1], cell)
    values[-1] = None
    code = np.array([*codes, -1], dtype=np.int32)[places][rows]
    known = code >= 0
    n = len(code)
    place = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    place[~known] = n
    first = np.minimum.reduceat(place, starts)
    at = np.where(first < n, first, starts)
    of_bag = np.where(first < n, code[at], -1)
    odd = np.flatnonzero(known & (code != np.repeat(of_bag, sizes)))
    bags, places = np.unique(np.searchsorted(raw.offsets, odd, side="right") - 1, return_index=True)
    for i, k in zip(bags.tolist(), odd[places].tolist(), strict=True):
        where = raw.where if raw.lines is None else f"{raw.where}: line {raw.lines[k]}"
        told, bag_id = values[int(code[k])], raw.bag_ids[i].item()
        message = f"column {name!r} is {told!r}, but {values[int(of_bag[i])]!r} in an earlier row of bag {bag_id!r}"
        raw.problems.append(Problem("rows of a bag disagree", "error", where, message, "all rows of a bag must agree"))
    return [values[c] for c in of_bag.tolist()], at.tolist()


def _cell(value: Any) -> Any:
    """A cell of candidates; nothing where it is empty."""
    if isinstance(value, str):
        return value.strip() or None
    return None if value is None or (isinstance(value, float) and value != value) else value


def _weighted(raw: RawBags, i: int, cell: Any, weights: Any) -> Any:
    """Candidates with their weights, where these stand in a column of their own."""
    if weights is None:
        return cell
    if not isinstance(cell, list) or not isinstance(weights, list) or len(cell) != len(weights):
        raise DataError(f"{raw.where}: row {i} does not have one weight for each candidate")
    return dict(zip(cell, weights, strict=True))


def _read_groups(raw: RawBags, cells: list[Any]) -> None:
    if None in cells:
        message = f"bag {raw.bag_ids[cells.index(None)].item()!r} has no group"
        raw.problems.append(Problem("group missing", "error", raw.where, message, "give one"))
        return
    raw.groups = as_numbers([str(cell) for cell in cells])  # names are numbered when those of all files are known
    if raw.groups.dtype.kind != "i" and all(map(reads_as_number, map(str, cells))):
        raise DataError(
            f"{raw.where}: the column 'group' must hold one integer a bag, or names of groups, not "
            f"{cells[0]!r}; rename it if it is a feature"
        )


def _whole_numbers(where: str, column: pa.Array, name: str) -> NDArray[np.int64]:
    if pa.types.is_string(column.type) or pa.types.is_floating(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"{where}: the column {name!r} must hold integers ({error}); ignore it") from error
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(
            f"{where}: the column {name!r} must hold an integer for each instance, -1 for unknown; ignore it or fill it"
        )
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


# -------------------------------------------------------------------- which columns are features


def instances_column(table: pa.Table, where: str, columns: Columns, roles: dict[str, str | None]) -> str | None:
    """The column of lists of instances in a table with one row per bag; None where a row is an instance."""
    if isinstance(columns.features, str) and columns.features in table.column_names:
        names = [columns.features]
    elif columns.features is not None and not isinstance(columns.features, str) and len(columns.features) == 1:
        names = [columns.features[0]] if columns.features[0] in table.column_names else []
    elif "instances" in table.column_names and depth(table.schema.field("instances").type) >= 2:
        names = ["instances"]
    else:
        ignored = [columns.ignore] if isinstance(columns.ignore, str) else columns.ignore or []
        names = [n for n in table.column_names if n not in roles.values() and n not in ignored]
    deep = [n for n in names if depth(table.schema.field(n).type) >= 2]
    if not deep:
        # An empty list of lists has no type of numbers inside; the message of the reader of lists is the better one.
        empty = "instances" in names and is_list(table.schema.field("instances").type)
        nested = empty and is_list(table.schema.field("instances").type.value_type)
        return "instances" if nested else None
    bag = roles["bag"]
    if bag is not None and deep != ["instances"] and len(whole(table, bag).unique()) < table.num_rows:
        return None  # one row per instance, each of which is an image; "instances" is what mipl writes, one row per bag
    if len(deep) > 1:
        raise DataError(
            f"{where} has {len(deep)} columns of lists of instances: {', '.join(map(repr, deep))}; say which one with "
            "features=NAME (on the command line --features NAME)"
        )
    return pick(where, table.column_names, deep[0], "features")


def _keep_features(raw: RawBags, wanted: Sequence[str] | None) -> None:
    """Leave out of `raw` the named features of instances that a model does not know."""
    names = raw.feature_names
    if wanted is None or names is None or tuple(names) == tuple(wanted):
        return
    left_out = unknown_to_model(raw.where, names, wanted)
    column = {name: j for j, name in enumerate(names)}
    raw.values = raw.values[:, [column[name] for name in wanted]]
    raw.feature_names, raw.instance_shape = tuple(wanted), None
    if left_out:
        raw.remarks.append(f"{raw.where}: left out: {by_reason(left_out)}")


class Features:
    """The feature columns of a table, and what was left out."""

    def __init__(
        self,
        table: pa.Table,
        where: str,
        columns: Columns,
        roles: dict[str, str | None],
        own: bool,
        decimal: str,
        lines: NDArray[np.int64] | None = None,
    ) -> None:
        def place(row: int) -> str:
            return f"row {row}" if lines is None else f"line {lines[row]}"

        self.left_out: dict[str, str] = {}
        self.odd_cells: dict[str, tuple[str, str]] = {}
        self.texts: dict[tuple[int, int], str] = {}
        self.shape: tuple[int, ...] | None = None
        self.in_lists: tuple[int, ...] | None = None
        self.names: tuple[str, ...] | None
        taken = {name for name in roles.values() if name is not None}
        taken |= {name for name in ("instance_label", "group") if name in table.column_names}
        names = [name for name in table.column_names if name not in taken]
        if columns.ignore is not None:
            for name in taken_names(where, table.column_names, columns.ignore, "ignore"):
                if name in names:
                    names.remove(name)
                    self.left_out[name] = "as asked"
        asked = columns.features is not None
        if columns.features is not None:
            wanted = taken_names(where, table.column_names, columns.features, "features")
            wanted = [name for name in wanted if name not in roles.values() and name not in self.left_out]
            self.left_out |= {name: "not asked for" for name in names if name not in wanted}
            names = wanted
        lists = [name for name in names if depth(table.schema.field(name).type) > 0]
        # Columns f0, f1, ... stand for features without names, which a model takes by their number.
        if not asked and not lists and columns.model_features is not None and not _are_numbered(names):
            self.left_out |= unknown_to_model(where, names, columns.model_features)
            names, asked = list(columns.model_features), True
        if lists:
            self._take_list(table, where, names, lists, place)
            return
        scalars: dict[str, NDArray[Any]] = {}
        for name in names:
            values, odd = _column(whole(table, name), decimal, asked or own)
            if values is None:
                if asked:
                    raise DataError(f"{where}: the column {name!r} is {table.schema.field(name).type}, not numbers")
                self.left_out[name] = odd if isinstance(odd, str) else _kind_of_text(list(odd.values()))
                if self.left_out[name].startswith(_AS_NUMBERS):
                    row, cell = next(iter(odd.items()))
                    self.odd_cells[name] = (place(row), cell)
                continue
            why = None if asked or own else _why_not(name, values)
            if why is not None:
                self.left_out[name] = why
                continue
            if isinstance(odd, dict):
                self.texts |= {(i, len(scalars)): value for i, value in odd.items()}
            scalars[name] = values
        if not scalars:
            why = f"; not {by_reason(self.left_out)}" if self.left_out else ""
            raise DataError(f"{where} has no feature columns beside {sorted(taken)}{why}")
        self.columns = self.names = tuple(scalars)
        single = all(v.dtype == np.float32 for v in scalars.values())
        self.values = np.empty((table.num_rows, len(scalars)), dtype=np.float32 if single else np.float64)
        for j, column in enumerate(scalars.values()):
            self.values[:, j] = column

    def _take_list(
        self, table: pa.Table, where: str, names: list[str], lists: list[str], place: Callable[[int], str]
    ) -> None:
        if len(lists) > 1:
            raise DataError(
                f"{where} has {len(lists)} columns of lists: {', '.join(map(repr, lists))}; say which one holds the "
                "features with features=NAME (on the command line --features NAME)"
            )
        name = lists[0]
        self.left_out |= {other: f"the features are the lists {name!r}" for other in names if other != name}

        def call(row: int) -> str:
            return f"{where}: {place(row)}, column {name!r}"

        self.values, self.shape, self.names = vectors(whole(table, name), call)
        self.columns, self.in_lists = (name,), self.shape


def _are_numbered(names: list[str]) -> bool:
    return names == [f"f{j}" for j in range(len(names))]


def _column(column: pa.Array, decimal: str, must: bool) -> tuple[Any, Any]:
    """Numbers (n,) of a column with the cells that are none, or None with the cells or another reason."""
    if is_number_type(column.type):
        if pa.types.is_float32(column.type) and not column.null_count:
            return column.to_numpy(zero_copy_only=False), None
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, odd = numbers_in_text(column, decimal)
        filled = int(np.isfinite(values).sum())
        if must or (filled and filled >= _NUMERIC_SHARE * (filled + len(odd))):
            return values, odd
        return None, odd or "empty"
    if pa.types.is_null(column.type):
        return (np.full(len(column), np.nan), None) if must else (None, "empty")
    return None, str(column.type)


def _kind_of_text(cells: list[str]) -> str:
    """Why a column of text is no feature, with what keeps it from being one where it looks like numbers.

    >>> _kind_of_text(["loud", "soft"]), _kind_of_text(["1.234,5", "1.001,0"]), _kind_of_text(["10 kHz", "2.5 kHz"])
    ('text', 'text: numbers with marks between thousands', 'text: numbers with a unit')
    """
    some = [cell.strip() for cell in cells[:_SAMPLE_CELLS]]
    for what, pattern in _WRITTEN_NUMBERS.items():
        found = [pattern.fullmatch(cell) for cell in some]
        endings = {match["unit"] for match in found if match and "unit" in pattern.groupindex}
        if all(found) and len(endings) <= 1:
            return f"{_AS_NUMBERS}{what}"
    return "text"


def _why_not(name: str, values: NDArray[Any]) -> str | None:
    if np.isnan(values).all():
        return "empty"
    return non_feature(name, values)


# -------------------------------------------------------------------- what stands beside the rows


def _with_class_names(table: pa.Table) -> pa.Table:
    """Names in place of class numbers, where Hugging Face's `datasets` wrote their names into the schema."""
    text = (table.schema.metadata or {}).get(b"huggingface")
    if text is None:
        return table
    try:
        features = json.loads(text)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return table
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else feature
        inner = inner[0] if isinstance(inner, list) and inner else inner
        names = inner.get("names") if isinstance(inner, dict) else None
        if name in table.column_names and isinstance(names, list):
            cells = [_named(cell, names) for cell in whole(table, name).to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(cells))
    return table


def _named(cell: Any, names: list[str]) -> Any:
    if isinstance(cell, list):
        return [_named(each, names) for each in cell]
    return names[cell] if isinstance(cell, int) and 0 <= cell < len(names) else None


def metadata(table: pa.Table, where: str) -> dict[str, Any]:
    """What mipl wrote beside the columns of an Arrow schema."""
    text = (table.schema.metadata or {}).get(b"mipl")
    if text is None:
        return {}
    return read_metadata(text, where)


def read_metadata(text: str | bytes, where: str) -> dict[str, Any]:
    """What mipl writes beside the rows of a file, read back from JSON."""
    try:
        extra = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: the metadata of mipl are not JSON ({error})") from error
    return check_metadata(extra, where)


def check_metadata(extra: Any, where: str) -> dict[str, Any]:
    """The metadata of a file after JSON was read; keys that are not known are left alone."""
    if not isinstance(extra, dict):
        raise DataError(f"{where}: the metadata of mipl are a {type(extra).__name__}, not a JSON object")
    newest = extra.get("format", 1)
    if isinstance(newest, int) and newest > 1:
        raise DataError(f"{where} was written by a newer mipl (format {newest}); upgrade mipl")
    return extra
