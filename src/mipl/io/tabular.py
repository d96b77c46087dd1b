"""From an Arrow table, nested or long, to bags: the one way of all table formats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.columns import Columns, by_reason, find_roles, pick, unknown_to_model
from mipl.io.guessing import likely_columns
from mipl.io.image_columns import with_pixels
from mipl.io.lists import depth, is_list, whole
from mipl.io.long import from_long
from mipl.io.metadata import read_metadata
from mipl.io.nested import from_nested
from mipl.io.printed_lists import with_lists
from mipl.io.raw import RawBags

__all__ = ["from_table", "instances_column", "metadata"]


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
    """Read bags from a table with one row per bag or one row per instance.

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
    lines, text, decimal
        See `mipl.io.long.from_long`.
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
    columns = columns.in_file(table.column_names)
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
    instances = None if nested is False else instances_column(table, where, columns, roles)
    if instances is not None:
        raw = from_nested(table, instances, where, columns, roles, extra)
        raw.lines = None if lines is None else np.repeat(lines, np.diff(raw.offsets))
        _keep_features(raw, columns.model_features)
    else:
        raw = from_long(table, where, columns, roles, extra, lines=lines, text=text, decimal=decimal)
    if pixels.patch_names is not None:
        raw.instance_ids = pixels.patch_names
        raw.remarks.append(f"{where}: {pixels.remark}")
    raw.column_names = table.column_names
    if raw.candidates is None:
        raw.likely = likely_columns(table, roles)
    return raw


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


def metadata(table: pa.Table, where: str) -> dict[str, Any]:
    """What mipl wrote beside the columns of an Arrow schema."""
    text = (table.schema.metadata or {}).get(b"mipl")
    if text is None:
        return {}
    return read_metadata(text, where)


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
