"""Tables with one row per instance: features in columns of their own, or in one column of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Columns, Roles, absent, listed_names
from mipl.io.feature_columns import Features
from mipl.io.guessing import likely_columns
from mipl.io.labels import (
    as_numbers,
    candidates_or_problem,
    label_cell,
    map_labels,
    restore_numbers,
    whole_number,
)
from mipl.io.lists import arrow_ids, is_number_type, whole
from mipl.io.numbers import reads_as_number
from mipl.io.problems import Problem
from mipl.io.raw import RawBags
from mipl.rows import group_rows

__all__ = ["from_long"]

_SHOWN = 5


def from_long(
    table: pa.Table,
    where: str,
    columns: Columns,
    roles: dict[str, str | None],
    extra: dict[str, Any],
    *,
    lines: NDArray[np.int64] | None = None,
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
    lines : (n,) int, default=None
        The line of each row, counted from 1; None where the file has no lines.
    text : bool, default=False
        Whether the file holds text only, so that ``7`` may be the integer or the name.
    decimal : str, default="."
        The decimal mark in columns of text.
    """
    bag = roles["bag"]
    if bag is None:
        # Where a model says what the features are, candidates may not be asked for.
        missing = ["bag"] if roles["candidates"] or columns.model_features is not None else ["bag", "candidates"]
        raise absent(where, table.column_names, *missing, likely=likely_columns(table, roles))
    if table.num_rows == 0:
        raise DataError(f"{where} has no rows: the data set is empty")
    ids = _bag_ids(where, whole(table, bag), text and extra.get("bag_id") != "string")
    numeric = extra.get("bag_id") != "string" and (text or is_number_type(table.schema.field(bag).type))
    table, ids, lines, nameless = _named_rows(where, table, ids, lines, bag, numeric)
    own = "features" in extra or "feature_names" in extra
    features = Features(table, where, columns, roles, own, decimal, lines)
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
        problems=[] if nameless is None else [nameless],
        roles=Roles(
            bag,
            roles["candidates"],
            roles["label"],
            roles["instance_id"],
            features.columns,
            features.left_out,
            features.in_lists,
            features.odd_cells,
        ),
    )
    if features.texts:
        position = np.argsort(rows)
        raw.texts = {(int(position[i]), j): value for (i, j), value in features.texts.items()}
    if "feature_names" not in extra and features.names == tuple(f"f{j}" for j in range(len(features.columns))):
        raw.feature_names = None  # the names of features without names
    _read_labels(raw, table, rows, roles, columns, extra, text)
    texts = [name for name, why in features.left_out.items() if why == "text"]
    if texts and columns.features is None and columns.model_features is None and raw.counting_features().all():
        message = (
            f"the text in {listed_names(texts)} is no feature, and what is left, {listed_names(features.columns)}, is "
            "the number of a row in its bag"
        )
        remedy = "turn the text into numbers first, or say what the features are with features=[...] (--features)"
        raw.problems.append(Problem("no features", "error", where, message, remedy))
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
            candidates_or_problem(cell, columns.candidates_sep, classes is None, raw.bag_place(k), known, raw.problems)
            for cell, k in zip(*_one_per_bag(raw, cells, rows, roles["candidates"]), strict=True)
        ]
    if roles["label"] is not None:
        cells = [label_cell(v) for v in whole(table, roles["label"]).to_pylist()]
        raw.labels, _ = _one_per_bag(raw, cells, rows, roles["label"])
    if text and classes is None:
        everything = raw.candidates if raw.candidates is not None else [[v] for v in raw.labels or [] if v is not None]
        sets, raw.labels = restore_numbers(everything, raw.labels)
        raw.candidates = None if raw.candidates is None else sets
    elif text and isinstance(classes, list) and classes and isinstance(classes[0], int):
        sets = [map_labels(entry, whole_number) for entry in raw.candidates or []]
        raw.candidates = None if raw.candidates is None else sets
        raw.labels = None if raw.labels is None else [whole_number(v) for v in raw.labels]
    if "instance_label" in names:
        raw.instance_labels = _whole_numbers(raw, table, "instance_label")[rows]
    if "group" in names:
        cells, _ = _one_per_bag(raw, [label_cell(v) for v in whole(table, "group").to_pylist()], rows, "group")
        if any(v is None for v in cells):
            i = cells.index(None)
            raw.problems.append(
                Problem(
                    "group missing", "error", f"{raw.where}: bag {raw.bag_ids[i].item()!r}", "has no group", "give one"
                )
            )
        else:
            groups = as_numbers([str(v) for v in cells])
            if groups.dtype.kind != "i" and all(map(reads_as_number, map(str, cells))):
                raise DataError(
                    f"{raw.where}: the column 'group' must hold one integer a bag, or names of groups, not "
                    f"{cells[0]!r}; rename it if it is a feature"
                )
            raw.groups = groups  # names too: they are numbered when those of all files are known


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


def _named_rows(
    where: str, table: pa.Table, ids: NDArray[Any], lines: NDArray[np.int64] | None, bag: str, numeric: bool
) -> tuple[pa.Table, NDArray[Any], NDArray[np.int64] | None, Problem | None]:
    """The rows that name their bag, and what is wrong with the others.

    Rows in which every cell is empty, as spreadsheets have them at the end, are just left out.
    """
    if ids.dtype.kind != "U" or not (ids == "").any():
        return table, ids, lines, None
    nameless: list[tuple[str, str]] = []  # the row and a column with a value
    for i in np.flatnonzero(ids == "").tolist():
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
    keep = ids != ""
    if not keep.any():
        raise DataError(str(problem) if problem is not None else f"{where} has no rows: the data set is empty")
    kept = as_numbers(ids[keep].tolist()) if numeric else ids[keep]
    return table.filter(pa.array(keep)), kept, None if lines is None else lines[keep], problem


def _one_per_bag(raw: RawBags, cells: list[Any], rows: NDArray[np.int64], name: str) -> tuple[list[Any], list[int]]:
    """The value of each bag, and the instance that has it; rows agree or are empty, else it is a problem of `raw`."""
    found, at = [], []
    for i, (start, end) in enumerate(zip(raw.offsets[:-1].tolist(), raw.offsets[1:].tolist(), strict=True)):
        value, place = None, start
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
            value, place = cell, k
        found.append(value)
        at.append(place)
    return found, at


def _cell(value: Any) -> Any:
    """A cell of candidates; nothing where it is empty."""
    if isinstance(value, str):
        return value.strip() or None
    return None if value is None or (isinstance(value, float) and value != value) else value


def _id(raw: RawBags, i: int) -> str:
    return repr(raw.bag_ids[i].item())
