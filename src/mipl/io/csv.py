"""Long CSV: one row per instance, for people with a spreadsheet.

Columns: ``bag_id``, ``candidates`` (``"a|b"``, with votes or weights ``"a:3|b:1"``; empty where nothing is known, so
that all classes are candidates; see `mipl.votes.read_entry` for names with a ``:``), optionally ``label`` (empty where
unknown), ``instance_label`` (class index, q for negative, -1 for unknown) and ``group`` (an integer); all others are
features, and their names are the feature names; only ``f0, f1, ...`` stand for features without names. Rows of a bag
may lie anywhere; candidates, label and group must agree in all of them or be empty after the first. What the columns
would lose (a class that is nobody's candidate, an order of classes other than sorted, the background class, ids that
only look like numbers, the shape of an instance, features that are indeed called ``f0, f1, ...``) stands in a first
line ``# mipl {json}``, written only where it is needed.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.candidates import bag_name
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.rows import group_rows
from mipl.votes import join_votes, read_entry, split_vote

__all__ = ["read", "write"]

_MARK = "# mipl "
_BLOCK_BYTES = 16 << 20
_RESERVED = ("bag_id", "candidates", "label", "instance_label", "group")


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`; class names, ids and feature names that a CSV cannot hold are refused."""
    names, ids = dataset.classes.astype(str), dataset.bag_ids.astype(str)
    for what, values in (("class name", names), ("bag id", ids)):
        for value in values.tolist():
            if value != value.strip() or not value or any(c in value for c in '|\n\r\0"'):
                raise DataError(f"the {what} {value!r} cannot be written as CSV; rename it or save as .parquet")
    if dataset.candidate_weights is None:
        joined = np.array(["|".join(names[row]) for row in dataset.candidates])
    else:
        pairs = zip(dataset.candidates, dataset.candidate_weights, strict=True)
        joined = np.array([join_votes(names[row], weights[row]) for row, weights in pairs])
    columns: dict[str, Any] = {"bag_id": dataset.bags.spread(ids), "candidates": dataset.bags.spread(joined)}
    if dataset.labels is not None:
        known = np.where(dataset.labels >= 0, names[dataset.labels], "")
        columns["label"] = dataset.bags.spread(known)
    if dataset.instance_labels is not None:
        columns["instance_label"] = dataset.instance_labels
    if dataset.groups is not None:
        columns["group"] = dataset.bags.spread(dataset.groups)
    for name, values in zip(_feature_columns(dataset.bags), dataset.bags.instances.T, strict=True):
        columns[name] = np.ascontiguousarray(values)
    extra = _what_columns_lose(dataset)
    with path.open("wb") as file:
        if extra:
            file.write(f"{_MARK}{json.dumps(extra)}\n".encode())
        pyarrow.csv.write_csv(pa.table(columns), file)


def _what_columns_lose(dataset: MIPLDataset) -> dict[str, Any]:
    used = dataset.candidates.any(axis=0)
    implied = _as_numbers(sorted(dataset.classes[used].astype(str).tolist()))
    extra: dict[str, Any] = {}
    if dataset.bags.feature_names == _unnamed(dataset.bags.n_features):
        extra["feature_names"] = "given"
    ambiguous = any(split_vote(name) is not None for name in dataset.classes.astype(str).tolist())
    if ambiguous or not used.all() or not np.array_equal(np.sort(implied), dataset.classes):
        extra["classes"] = dataset.classes.tolist()
    if dataset.candidate_weights is not None:
        extra["weights"] = True
    if dataset.background is not None:
        extra["background"] = dataset.background
    if dataset.bag_ids.dtype.kind == "U" and _as_numbers(dataset.bag_ids.tolist()).dtype.kind != "U":
        extra["bag_id"] = "string"
    if dataset.bags.instance_shape != (dataset.bags.n_features,):
        extra["instance_shape"] = list(dataset.bags.instance_shape)
    return extra


def read(path: Path) -> MIPLDataset:
    """Read a data set with one row per instance."""
    extra, skip, header = _head(path)
    for name in ("bag_id", "candidates"):
        if name not in header:
            raise DataError(f"{path} has no column {name!r}; its columns are {header}")
    features = [name for name in header if name not in _RESERVED]
    if not features:
        raise DataError(f"{path} has no feature columns beside {header}")
    table = _table(path, skip, header, features)
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows: the data set is empty")
    top = 2 + skip  # the line of the first row, counted from 1
    flat = np.stack([_numbers(path, table, name, top) for name in features], axis=1).astype(np.float32)
    ids = np.array(table["bag_id"].to_pylist())
    if extra.get("bag_id") != "string":
        ids = _as_numbers(ids.tolist())
    empty = np.flatnonzero(ids.astype(str) == "")
    if len(empty):
        raise DataError(f"{path}: line {top + empty[0]} has no bag_id")
    order, offsets, bag_ids = group_rows(ids, len(flat))
    rows = np.arange(len(flat)) if order is None else order
    cells = _one_a_bag(path, table, "candidates", top, rows, offsets, bag_ids)
    # Where all candidates have weights, a part such as "a:1" is never a name, not even where a class is called so.
    known = () if extra.get("weights") else set(map(str, extra["classes"])) if "classes" in extra else None
    candidates = [
        read_entry(f"{path}: {bag_name(i, bag_ids)}", cell, known) if cell.strip() else None
        for i, cell in enumerate(cells)
    ]
    labels = None
    if "label" in header:
        labels = [v.strip() or None for v in _one_a_bag(path, table, "label", top, rows, offsets, bag_ids)]
    groups = None
    if "group" in header:
        groups = _as_numbers(_one_a_bag(path, table, "group", top, rows, offsets, bag_ids))
        if groups.dtype.kind != "i":
            raise DataError(f"{path}: the column 'group' must hold one integer a bag; rename it if it is a feature")
    convert = _label_converter(extra.get("classes"), candidates)
    instance_labels = None
    if "instance_label" in header:
        instance_labels = _numbers(path, table, "instance_label", top)[rows].astype(np.int64)
    named = "feature_names" in extra or tuple(features) != _unnamed(len(features))
    return MIPLDataset(
        bags=Bags(flat[rows], offsets, extra.get("instance_shape"), features if named else None),
        candidates=[_converted(entry, convert) for entry in candidates],
        labels=None if labels is None else [None if v is None else convert(v) for v in labels],
        classes=extra.get("classes"),
        instance_labels=instance_labels,
        bag_ids=bag_ids,
        name=path.stem,
        groups=groups,
        background=extra.get("background"),
    )


def _feature_columns(bags: Bags) -> tuple[str, ...]:
    if bags.feature_names is None:
        return _unnamed(bags.n_features)
    for name in bags.feature_names:
        if name in _RESERVED or any(c in name for c in '\n\r\0"'):
            raise DataError(f"the feature name {name!r} cannot be a CSV column; rename it or save as .parquet")
    return bags.feature_names


def _unnamed(n_features: int) -> tuple[str, ...]:
    return tuple(f"f{j}" for j in range(n_features))


def _head(path: Path) -> tuple[dict[str, Any], int, list[str]]:
    """The metadata line if there is one, how many lines to skip for it, and the column names."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            extra = {}
            if first.startswith(_MARK):
                extra = json.loads(first[len(_MARK) :])
                header = next(csv.reader(file), [])
            else:
                header = next(csv.reader([first]), [])
    except (UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8 ({error})") from error
    if not isinstance(extra, dict):
        raise DataError(f"{path}: the first line does not hold a JSON object")
    if not header:
        raise DataError(f"{path} is empty; its first line must name the columns")
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path} has the column {name!r} {header.count(name)} times")
    return extra, int(first.startswith(_MARK)), header


def _table(path: Path, skip: int, header: list[str], features: list[str]) -> pa.Table:
    kinds = {name: pa.float64() if name in features else pa.string() for name in header}
    if "instance_label" in header:
        kinds["instance_label"] = pa.int64()
    try:
        # One thread: only then does the error say which row is at fault.
        return pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(use_threads=False, skip_rows=skip, block_size=_BLOCK_BYTES),
            convert_options=pyarrow.csv.ConvertOptions(column_types=kinds),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {str(error).splitlines()[0]}") from error


def _numbers(path: Path, table: pa.Table, name: str, top: int) -> NDArray[Any]:
    column = table[name].combine_chunks()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{path}: line {top + row}, column {name!r} is empty; fill it or drop the row")
    values = column.to_numpy(zero_copy_only=False)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"{path}: line {top + bad[0]}, column {name!r} is {values[bad[0]]}; replace it by a number")
    return values


def _one_a_bag(
    path: Path,
    table: pa.Table,
    name: str,
    top: int,
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ids: NDArray[Any],
) -> list[str]:
    """The value of a bag's first row; later rows repeat it or are empty."""
    values = np.array(table[name].to_pylist(), dtype=str)[rows]
    first = values[offsets[:-1]]
    expected = np.repeat(first, np.diff(offsets))
    differ = np.flatnonzero((values != expected) & (values != ""))
    if len(differ):
        k = int(differ[0])
        bag = int(np.searchsorted(offsets, k, side="right")) - 1
        raise DataError(
            f"{path}: line {top + rows[k]}, column {name!r} is {values[k].item()!r}, but {expected[k].item()!r} in the "
            f"first row of bag {ids[bag].item()!r}; all rows of a bag must agree"
        )
    return first.tolist()


def _converted(entry: Any, convert: Any) -> Any:
    if isinstance(entry, dict):
        return {convert(label): weight for label, weight in entry.items()}
    return None if entry is None else [convert(label) for label in entry]


def _label_converter(classes: list[Any] | None, candidates: list[Any]) -> Any:
    if classes is not None:
        whole_numbers = bool(classes) and isinstance(classes[0], int)
    else:
        whole_numbers = _as_numbers([label for entry in candidates for label in entry or ()]).dtype.kind == "i"
    return (lambda v: int(v) if _is_number(v) else v) if whole_numbers else str


def _as_numbers(values: list[str]) -> NDArray[Any]:
    """Integers if every string is one in its plain form, else the strings."""
    return (
        np.array([int(v) for v in values]) if values and all(map(_is_number, values)) else np.array(values, dtype=str)
    )


def _is_number(value: str) -> bool:
    digits = value.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and len(digits) < 20
    return plain and str(int(value)) == value and abs(int(value)) < 2**63
