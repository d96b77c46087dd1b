"""Tables with one row per instance: features in columns of their own, or in one column of lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Columns, Roles, absent, non_feature, taken_names, unknown_to_model
from mipl.io.labels import as_numbers, candidate_cell, label_cell, map_labels, restore_numbers
from mipl.io.lists import arrow_ids, depth, is_number_type, vectors, whole
from mipl.io.problems import Problem
from mipl.io.raw import RawBags
from mipl.rows import group_rows

__all__ = ["from_long", "numbers_in_text"]

#: A text column is one of numbers with some cells that are none if at least this share of its cells are numbers.
_NUMERIC_SHARE = 0.5
_UNKNOWN = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?")


def from_long(
    table: pa.Table,
    where: str,
    columns: Columns,
    roles: dict[str, str | None],
    extra: dict[str, Any],
    *,
    top: int | None = None,
    text: bool = False,
    decimal: str = ".",
) -> RawBags:
    """Read bags from a table with one row per instance; rows of a bag may lie anywhere.

    Parameters
    ----------
    table : pyarrow.Table
        One row per instance.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    roles : dict
        What `find_roles` found.
    extra : dict
        What mipl stores beside the columns; empty for files of others.
    top : int, default=None
        The line of the first row, counted from 1; None where the file has no lines.
    text : bool, default=False
        Whether the file holds text only, so that ``7`` may be the integer or the name.
    decimal : str, default="."
        The decimal mark in columns of text.
    """
    bag = roles["bag"]
    if bag is None:
        raise absent(where, table.column_names, "bag", *(["candidates"] if roles["candidates"] is None else []))
    if table.num_rows == 0:
        raise DataError(f"{where} has no rows: the data set is empty")
    lines = None if top is None else np.arange(table.num_rows) + top
    ids = _bag_ids(where, whole(table, bag), text and extra.get("bag_id") != "string")
    numeric = extra.get("bag_id") != "string" and (text or is_number_type(table.schema.field(bag).type))
    table, ids, lines = _without_blank_rows(where, table, ids, lines, bag, numeric)
    features = _Features(table, where, columns, roles, "features" in extra or "feature_names" in extra, decimal)
    order, offsets, bag_ids = group_rows(ids, len(ids))
    rows = np.arange(len(ids)) if order is None else order
    raw = RawBags(
        where=where,
        name=None,
        values=features.values if order is None else features.values[order],
        offsets=offsets,
        bag_ids=bag_ids,
        candidates=None,
        classes=extra.get("classes"),
        background=extra.get("background"),
        instance_shape=extra.get("instance_shape", features.shape),
        feature_names=features.names,
        lines=None if lines is None else lines[rows],
        roles=Roles(
            bag,
            roles["candidates"],
            roles["label"],
            roles["instance_id"],
            features.columns,
            features.left_out,
            features.in_lists,
        ),
    )
    if features.texts:
        position = np.argsort(rows)
        raw.texts = {(int(position[i]), j): value for (i, j), value in features.texts.items()}
    if "feature_names" not in extra and features.names == tuple(f"f{j}" for j in range(len(features.columns))):
        raw.feature_names = None  # the names of features without names
    _read_labels(raw, table, rows, roles, columns, extra, text)
    if roles["instance_id"] is not None:
        raw.instance_ids = np.array([str(v) for v in whole(table, roles["instance_id"]).to_pylist()])[rows]
        if (as_ids := as_numbers(raw.instance_ids.tolist())).dtype.kind == "i":
            raw.instance_ids = as_ids
    return raw


def _read_labels(
    raw: RawBags,
    table: pa.Table,
    rows: NDArray[np.int64],
    roles: dict[str, str | None],
    columns: Columns,
    extra: dict[str, Any],
    text: bool,
) -> None:
    """Fill in candidates, labels, instance labels and groups of `raw`."""
    names = table.column_names
    classes = extra.get("classes")
    if roles["candidates"] is not None:
        cells = [_cell(v) for v in whole(table, roles["candidates"]).to_pylist()]
        # Where all candidates have weights, a part such as "a:1" is never a name, not even where a class is called so.
        known = () if extra.get("weights") else None if classes is None else set(map(str, classes))
        raw.candidates = [
            candidate_cell(cell, columns.candidates_sep, classes is None, f"{raw.where}: bag {_id(raw, i)}", known)
            for i, cell in enumerate(_one_per_bag(raw, cells, rows, roles["candidates"]))
        ]
    if roles["label"] is not None:
        cells = [label_cell(v) for v in whole(table, roles["label"]).to_pylist()]
        raw.labels = _one_per_bag(raw, cells, rows, roles["label"])
    if text and classes is None:
        everything = raw.candidates if raw.candidates is not None else [[v] for v in raw.labels or [] if v is not None]
        sets, raw.labels = restore_numbers(everything, raw.labels)
        raw.candidates = None if raw.candidates is None else sets
    elif text and isinstance(classes, list) and classes and isinstance(classes[0], int):
        sets = [map_labels(entry, _whole_number) for entry in raw.candidates or []]
        raw.candidates = None if raw.candidates is None else sets
        raw.labels = None if raw.labels is None else [_whole_number(v) for v in raw.labels]
    if "instance_label" in names:
        raw.instance_labels = _whole_numbers(raw, table, "instance_label")[rows]
    if "group" in names:
        cells = _one_per_bag(raw, [label_cell(v) for v in whole(table, "group").to_pylist()], rows, "group")
        if any(v is None for v in cells):
            i = cells.index(None)
            raw.problems.append(
                Problem(
                    "group missing", "error", f"{raw.where}: bag {raw.bag_ids[i].item()!r}", "has no group", "give one"
                )
            )
        else:
            groups = as_numbers([str(v) for v in cells])
            if groups.dtype.kind != "i" and _all_numbers(cells):
                raise DataError(
                    f"{raw.where}: the column 'group' must hold one integer a bag, or names of groups, not "
                    f"{cells[0]!r}; rename it if it is a feature"
                )
            # Names of groups (a recording, a patient) are as good as numbers: only which are equal counts.
            raw.groups = groups if groups.dtype.kind == "i" else np.unique(groups, return_inverse=True)[1]


def _all_numbers(cells: list[Any]) -> bool:
    try:
        return all(math.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else value


def _whole_numbers(raw: RawBags, table: pa.Table, name: str) -> NDArray[np.int64]:
    column = whole(table, name)
    if pa.types.is_string(column.type) or pa.types.is_floating(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"{raw.where}: the column {name!r} must hold integers ({error}); ignore it") from error
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"{raw.where}: the column {name!r} must hold an integer in every row; ignore it or fill it")
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _bag_ids(where: str, column: pa.Array, text: bool) -> NDArray[Any]:
    """The bag of each row as integers or text, an empty text where it is missing; `text` is stripped of blanks."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if column.null_count:
        filled = column.drop_null()
        ids = np.full(len(column), "", dtype=object)
        if len(filled):
            ids[column.is_valid().to_numpy(zero_copy_only=False)] = arrow_ids(where, filled).astype(str)
        ids = ids.astype(str)
    else:
        ids = arrow_ids(where, column)
    if ids.dtype.kind == "i":
        return ids
    return as_numbers([value.strip() for value in ids.tolist()]) if text else ids


def _without_blank_rows(
    where: str, table: pa.Table, ids: NDArray[Any], lines: NDArray[np.int64] | None, bag: str, numeric: bool
) -> tuple[pa.Table, NDArray[Any], NDArray[np.int64] | None]:
    """Leave out rows in which every cell is empty, as spreadsheets have them at the end."""
    if ids.dtype.kind != "U" or not (ids == "").any():
        return table, ids, lines
    missing = np.flatnonzero(ids == "")
    for i in missing.tolist():
        row = table.slice(i, 1).to_pylist()[0]
        filled = [k for k, v in row.items() if k != bag and v not in (None, "") and v == v]
        if filled:
            line = f"row {i}" if lines is None else f"line {lines[i]}"
            raise DataError(f"{where}: {line} has no {bag}, but a value in the column {filled[0]!r}; name its bag")
    keep = ids != ""
    if not keep.any():
        raise DataError(f"{where} has no rows: the data set is empty")
    kept = as_numbers(ids[keep].tolist()) if numeric else ids[keep]
    return table.filter(pa.array(keep)), kept, None if lines is None else lines[keep]


def _one_per_bag(raw: RawBags, cells: list[Any], rows: NDArray[np.int64], name: str) -> list[Any]:
    """The value of each bag; its rows agree or are empty, and a conflict is a problem of `raw`."""
    found = []
    for i, (start, end) in enumerate(zip(raw.offsets[:-1].tolist(), raw.offsets[1:].tolist(), strict=True)):
        value = None
        for k in range(start, end):
            cell = cells[rows[k]]
            if cell is None or cell == value:
                continue
            if value is not None:
                where = raw.where if raw.lines is None else f"{raw.where}: line {raw.lines[k]}"
                message = f"column {name!r} is {cell!r}, but {value!r} in an earlier row of bag {_id(raw, i)}"
                raw.problems.append(
                    Problem("rows of a bag disagree", "error", where, message, "all rows of a bag must agree")
                )
                break
            value = cell
        found.append(value)
    return found


def _cell(value: Any) -> Any:
    """A cell of candidates; nothing where it is empty."""
    if isinstance(value, str):
        return value.strip() or None
    return None if value is None or (isinstance(value, float) and value != value) else value


def _id(raw: RawBags, i: int) -> str:
    return repr(raw.bag_ids[i].item())


class _Features:
    """The feature columns of a table, and what was left out."""

    def __init__(
        self,
        table: pa.Table,
        where: str,
        columns: Columns,
        roles: dict[str, str | None],
        own: bool,
        decimal: str,
    ) -> None:
        self.left_out: dict[str, str] = {}
        self.texts: dict[tuple[int, int], str] = {}
        self.shape: tuple[int, ...] | None = None
        self.in_lists: int | None = None
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
            wanted = [name for name in wanted if name not in roles.values()]
            self.left_out |= {name: "not asked for" for name in names if name not in wanted}
            names = wanted
        lists = [name for name in names if depth(table.schema.field(name).type) > 0]
        # Columns f0, f1, ... stand for features without names, which a model takes by their number.
        if not asked and not lists and columns.model_features is not None and not _are_numbered(names):
            self.left_out |= unknown_to_model(where, names, columns.model_features)
            names, asked = list(columns.model_features), True
        if lists:
            self._take_list(table, where, names, lists)
            return
        scalars: dict[str, NDArray[Any]] = {}
        for name in names:
            values, odd = _column(whole(table, name), decimal, asked or own)
            if values is None:
                if asked:
                    raise DataError(f"{where}: the column {name!r} is {table.schema.field(name).type}, not numbers")
                self.left_out[name] = odd
                continue
            why = None if asked or own else _why_not(name, values)
            if why is not None:
                self.left_out[name] = why
                continue
            if isinstance(odd, dict):
                self.texts |= {(i, len(scalars)): value for i, value in odd.items()}
            scalars[name] = values
        if not scalars:
            why = ", ".join(f"{name!r} ({reason})" for name, reason in self.left_out.items())
            raise DataError(f"{where} has no feature columns beside {sorted(taken)}" + (f"; not {why}" if why else ""))
        self.columns = self.names = tuple(scalars)
        single = all(v.dtype == np.float32 for v in scalars.values())
        self.values = np.empty((table.num_rows, len(scalars)), dtype=np.float32 if single else np.float64)
        for j, column in enumerate(scalars.values()):
            self.values[:, j] = column

    def _take_list(self, table: pa.Table, where: str, names: list[str], lists: list[str]) -> None:
        if len(lists) > 1:
            raise DataError(
                f"{where} has {len(lists)} columns of lists: {', '.join(map(repr, lists))}; say which one holds the "
                "features with features=NAME (on the command line --features NAME)"
            )
        name = lists[0]
        self.left_out |= {other: f"the features are the lists {name!r}" for other in names if other != name}
        self.values, self.shape, self.names = vectors(
            whole(table, name), lambda i: f"{where}: row {i}, column {name!r}"
        )
        self.columns, self.in_lists = (name,), self.values.shape[1]


def _are_numbered(names: list[str]) -> bool:
    return names == [f"f{j}" for j in range(len(names))]


def _column(column: pa.Array, decimal: str, must: bool) -> tuple[Any, Any]:
    """Numbers (n,) of a column with the cells that are none, or None with the reason."""
    if is_number_type(column.type):
        if pa.types.is_float32(column.type) and not column.null_count:
            return column.to_numpy(zero_copy_only=False), None
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, odd = numbers_in_text(column, decimal)
        filled = int(np.isfinite(values).sum())
        if must or (filled and filled >= _NUMERIC_SHARE * (filled + len(odd))):
            return values, odd
        return None, "text" if odd else "empty"
    if pa.types.is_null(column.type):
        return (np.full(len(column), np.nan), None) if must else (None, "empty")
    return None, str(column.type)


def numbers_in_text(column: pa.Array, decimal: str = ".") -> tuple[NDArray[np.float64], dict[int, str]]:
    """Numbers (n,) out of text, NaN where there is none, and the cells that are neither a number nor empty."""
    text = pc.utf8_trim_whitespace(column)
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    unknown = pc.is_in(text, value_set=pa.array(_UNKNOWN, text.type))
    text = pc.if_else(unknown, pa.scalar(None, text.type), text)
    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False), {}
    except pa.ArrowInvalid:
        pass
    values = np.full(len(text), np.nan)
    odd = {}
    for i, cell in enumerate(text.to_pylist()):
        if cell is not None:
            try:
                values[i] = float(cell)
            except ValueError:
                odd[i] = column[i].as_py()
    return values, odd


def _why_not(name: str, values: NDArray[Any]) -> str | None:
    if np.isnan(values).all():
        return "empty"
    return non_feature(name, values)
