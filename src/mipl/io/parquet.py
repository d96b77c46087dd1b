"""Parquet, the native format: one row per bag, readable by pandas, polars, DuckDB, Spark and Dask.

Columns: ``bag_id`` (integer or string), ``instances`` (list of fixed-size lists of float), ``candidates`` (list of
strings), ``label`` (string or null), and where they are known ``weights`` (list of float, one for each candidate),
``instance_labels`` (list of integers: class index, q for negative, -1 for unknown) and ``group`` (integer). What the
columns cannot say (class order, background class, instance shape, feature names, name) is JSON under the key ``mipl``
of the schema's metadata; a file without it, written by another tool, is read too. Its ``candidates`` may be maps or
structs from labels to weights, or strings ``"a:3|b:1"``; a null stands for a bag of which nothing is known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.candidates import label_names
from mipl.dataset import MIPLDataset
from mipl.errors import DataError

__all__ = ["read", "write"]

_ROW_GROUP_BYTES = 64 << 20


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`, in row groups of about 64 MiB so that a reader can stream them."""
    bags = dataset.bags
    offsets = bags.offsets.astype(np.int32)
    rows = pa.FixedSizeListArray.from_arrays(pa.array(bags.instances.reshape(-1)), bags.n_features)
    names = dataset.classes.astype(str)
    members = np.nonzero(dataset.candidates)[1]
    counts = np.concatenate([[0], np.cumsum(dataset.candidates.sum(axis=1))]).astype(np.int32)
    label = label_names(dataset.labels, names) or [None] * len(dataset)
    columns = {
        "bag_id": pa.array(dataset.bag_ids),
        "instances": pa.ListArray.from_arrays(offsets, rows),
        "candidates": pa.ListArray.from_arrays(counts, pa.array(names[members], pa.string())),
        "label": pa.array(label, pa.string()),
    }
    if dataset.candidate_weights is not None:
        given = dataset.candidate_weights[dataset.candidates]
        columns["weights"] = pa.ListArray.from_arrays(counts, pa.array(given))
    if dataset.instance_labels is not None:
        columns["instance_labels"] = pa.ListArray.from_arrays(offsets, pa.array(dataset.instance_labels))
    if dataset.groups is not None:
        columns["group"] = pa.array(dataset.groups)
    extra = {
        "format": 1,
        "classes": dataset.classes.tolist(),
        "background": dataset.background,
        "instance_shape": list(bags.instance_shape),
        "feature_names": bags.feature_names,
        "name": dataset.name,
        "description": dataset.description,
    }
    table = pa.table(columns).replace_schema_metadata({"mipl": json.dumps(extra)})
    bag_bytes = max(1, bags.instances.nbytes // len(bags))
    pq.write_table(table, path, row_group_size=max(1, _ROW_GROUP_BYTES // bag_bytes))


def read(path: Path) -> MIPLDataset:
    """Read a data set with one row per bag."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged or not a Parquet file ({_first_line(error)})") from error
    for column in ("instances", "candidates"):
        if column not in table.column_names:
            raise DataError(f"{path} has no column {column!r}; its columns are {table.column_names}")
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows: the data set is empty")
    extra = _metadata(path, table)
    instances, offsets = _instances(path, _whole(table, "instances"))
    classes: list[Any] = extra.get("classes", [])
    whole_numbers = bool(classes) and isinstance(classes[0], int)
    candidates = _candidates(path, table, whole_numbers)
    labels = table["label"].to_pylist() if "label" in table.column_names else None
    return MIPLDataset(
        bags=Bags(instances, offsets, extra.get("instance_shape"), extra.get("feature_names")),
        candidates=candidates,
        labels=None if labels is None else _restore(labels, whole_numbers),
        classes=classes or None,
        instance_labels=_instance_labels(path, table, offsets),
        bag_ids=table["bag_id"].to_numpy() if "bag_id" in table.column_names else None,
        name=extra.get("name", path.stem),
        description=extra.get("description", ""),
        groups=table["group"].to_numpy() if "group" in table.column_names else None,
        background=extra.get("background"),
    )


def _candidates(path: Path, table: pa.Table, whole_numbers: bool) -> list[Any]:
    """One entry per bag as `mipl.candidates.parse_votes` takes it; weights are joined to their candidates."""
    entries = table["candidates"].to_pylist()
    if pa.types.is_map(table["candidates"].type):
        entries = [None if entry is None else dict(entry) for entry in entries]
    weights = table["weights"].to_pylist() if "weights" in table.column_names else [None] * len(entries)
    restored: list[Any] = []
    for row, (entry, given) in enumerate(zip(entries, weights, strict=True)):
        if given is not None:
            if not isinstance(entry, list) or not isinstance(given, list) or len(entry) != len(given):
                raise DataError(f"{path}: row {row} does not have one weight for each candidate")
            entry = dict(zip(entry, given, strict=True))
        if isinstance(entry, dict):
            restored.append(dict(zip(_restore(list(entry), whole_numbers), entry.values(), strict=True)))
        else:
            restored.append(entry if entry is None or isinstance(entry, str) else _restore(entry, whole_numbers))
    return restored


def _metadata(path: Path, table: pa.Table) -> dict[str, Any]:
    text = (table.schema.metadata or {}).get(b"mipl")
    if text is None:
        return {}
    extra = json.loads(text)
    if extra.get("format", 1) > 1:
        raise DataError(f"{path} was written by a newer mipl (format {extra['format']}); upgrade mipl")
    return extra


def _whole(table: pa.Table, column: str) -> pa.Array:
    array = table[column].combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def _instances(path: Path, column: pa.Array) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if not _is_list(column.type) or not _is_list(column.type.value_type):
        raise DataError(f"{path}: column 'instances' is {column.type}; it must be a list of lists of numbers")
    _refuse_nulls(path, column, "instances")
    rows = column.flatten()
    offsets = _edges(column)
    if len(rows) == 0:
        raise DataError(f"{path}: row 0 has no instances; a bag has at least one")
    if rows.null_count:
        row = int(np.flatnonzero(rows.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{path}: bag {np.searchsorted(offsets, row, side='right') - 1} holds a missing instance")
    widths = np.diff(_edges(rows))
    if (widths != widths[0]).any():
        row = int(np.flatnonzero(widths != widths[0])[0])
        bag = int(np.searchsorted(offsets, row, side="right")) - 1
        raise DataError(
            f"{path}: bag {bag}, instance {row - offsets[bag]} has {widths[row]} features, the first has {widths[0]}"
        )
    values = rows.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise DataError(f"{path}: the instances are of type {values.type}, not numbers")
    if values.null_count:
        raise DataError(f"{path}: the instances hold missing values; fill or drop them")
    flat = values.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return flat.reshape(len(rows), int(widths[0])), offsets


def _instance_labels(path: Path, table: pa.Table, offsets: NDArray[np.int64]) -> NDArray[np.int64] | None:
    if "instance_labels" not in table.column_names:
        return None
    column = _whole(table, "instance_labels")
    if not _is_list(column.type) or not pa.types.is_integer(column.type.value_type):
        raise DataError(f"{path}: column 'instance_labels' is {column.type}; it must be a list of integers")
    _refuse_nulls(path, column, "instance_labels")
    differ = np.flatnonzero(_edges(column) != offsets)
    if len(differ):
        raise DataError(f"{path}: row {differ[0] - 1} does not have one instance label for each instance")
    return column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)


def _refuse_nulls(path: Path, column: pa.Array, name: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{path}: row {row} has no {name}")


def _edges(column: pa.Array) -> NDArray[np.int64]:
    """Offsets of a list array from 0, whatever kind of list it is."""
    if pa.types.is_fixed_size_list(column.type):
        return np.arange(len(column) + 1) * column.type.list_size
    edges = column.offsets.to_numpy().astype(np.int64)
    return edges - edges[0]


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _restore(labels: Any, whole_numbers: bool) -> Any:
    """Class names are stored as strings; give integers back where the classes are integers."""
    if not whole_numbers:
        return labels
    return [int(v) if isinstance(v, str) and v.lstrip("-").isdecimal() else v for v in labels]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
