"""Tables with one row per bag: the instances are a list of lists of numbers, or a list of records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mipl.errors import DataError
from mipl.io.columns import Columns, Roles
from mipl.io.labels import candidates_or_problem, label_cell, map_labels, whole_number
from mipl.io.lists import arrow_ids, edges, is_list, vectors, whole
from mipl.io.problems import Problem
from mipl.io.raw import RawBags

__all__ = ["from_nested"]


def from_nested(
    table: pa.Table,
    instances: str,
    where: str,
    columns: Columns,
    roles: dict[str, str | None],
    extra: dict[str, Any],
) -> RawBags:
    """Read bags from a table with one row each.

    Parameters
    ----------
    table : pyarrow.Table
        One row per bag.
    instances : str
        The column of instances.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    roles : dict
        What `find_roles` found.
    extra : dict
        What mipl stores beside the columns; empty for files of others.
    """
    bag, names = roles["bag"], table.column_names
    ids = np.arange(table.num_rows) if bag is None else _ids(where, whole(table, bag))
    column = whole(table, instances)
    if column.null_count:
        i = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{where}: bag {ids[i].item()!r} has no instances; leave it out")
    offsets = edges(column)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise DataError(f"{where}: bag {ids[empty[0]].item()!r} has no instances; a bag has at least one")

    def call(row: int) -> str:
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        return f"{where}: bag {ids[i].item()!r}, instance {row - offsets[i]}"

    values, shape, fields = vectors(column.flatten(), call)
    whole_numbers = bool(extra.get("classes")) and isinstance(extra["classes"][0], int)
    sets, labels = None, None
    problems: list[Problem] = []
    if roles["candidates"] is not None:
        sets = _candidates(where, table, roles["candidates"], columns, extra, ids, problems)
        sets = [map_labels(entry, whole_number) if whole_numbers else entry for entry in sets]
    if roles["label"] is not None:
        named = None if not extra.get("classes") else set(map(str, extra["classes"]))
        labels = [label_cell(v, named) for v in whole(table, roles["label"]).to_pylist()]
        labels = list(map(whole_number, labels)) if whole_numbers else labels
    used = {bag, instances, roles["candidates"], roles["label"], "weights", "instance_labels", "group"}
    return RawBags(
        where=where,
        name=extra.get("name"),
        description=extra.get("description", ""),
        values=values,
        offsets=offsets,
        bag_ids=ids,
        candidates=sets,
        labels=labels,
        classes=extra.get("classes"),
        background=extra.get("background"),
        instance_labels=_instance_labels(where, table, offsets, ids),
        groups=whole(table, "group").to_numpy(zero_copy_only=False) if "group" in names else None,
        instance_ids=_instance_ids(where, table, roles["instance_id"], offsets),
        instance_shape=extra.get("instance_shape", shape),
        feature_names=extra.get("feature_names", fields),
        problems=problems,
        roles=Roles(
            bag,
            roles["candidates"],
            roles["label"],
            roles["instance_id"],
            (instances,),
            {name: "one row per bag has its features in one column" for name in names if name not in used},
            shape,
        ),
    )


def _ids(where: str, column: pa.Array) -> Any:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{where}: row {row} has no bag id")
    return arrow_ids(where, column)


def _instance_labels(where: str, table: pa.Table, offsets: Any, ids: Any) -> Any:
    if "instance_labels" not in table.column_names:
        return None
    column = whole(table, "instance_labels")
    if not is_list(column.type) or not pa.types.is_integer(column.type.value_type):
        raise DataError(f"{where}: column 'instance_labels' is {column.type}; it must be a list of integers")
    if column.null_count:
        i = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{where}: bag {ids[i].item()!r} has no instance_labels")
    differ = np.flatnonzero(edges(column) != offsets)
    if len(differ):
        i = int(differ[0]) - 1
        raise DataError(f"{where}: bag {ids[i].item()!r} does not have one instance label for each instance")
    labels = column.flatten()
    if labels.null_count:
        raise DataError(f"{where}: column 'instance_labels' has missing values; write -1 for unknown")
    return labels.to_numpy(zero_copy_only=False).astype(np.int64)


def _instance_ids(where: str, table: pa.Table, name: str | None, offsets: Any) -> Any:
    if name is None:
        return None
    column = whole(table, name)
    if not is_list(column.type) or column.null_count or (edges(column) != offsets).any():
        raise DataError(f"{where}: column {name!r} must be a list with one id for each instance of the bag")
    return np.array(column.flatten().to_pylist())


def _candidates(
    where: str,
    table: pa.Table,
    name: str,
    columns: Columns,
    extra: dict[str, Any],
    ids: Any,
    problems: list[Problem],
) -> list[Any]:
    """The candidates of each bag; weights in a column of their own are joined to them."""
    cells = whole(table, name).to_pylist()
    weights = whole(table, "weights").to_pylist() if "weights" in table.column_names else [None] * len(cells)
    entries: list[Any] = []
    known = None if not extra.get("classes") else set(map(str, extra["classes"]))
    for i, (cell, given) in enumerate(zip(cells, weights, strict=True)):
        bag = f"{where}: bag {ids[i].item()!r}"
        if given is not None:
            if not isinstance(cell, list) or not isinstance(given, list) or len(cell) != len(given):
                raise DataError(f"{where}: row {i} does not have one weight for each candidate")
            cell = dict(zip(cell, given, strict=True))
        entries.append(candidates_or_problem(cell, columns.candidates_sep, not extra, bag, known, problems))
    return entries
