"""JSON lines: one bag per line, or one instance per line, with the columns of Parquet.

What the lines cannot say (a class that is nobody's candidate, an order of classes other than sorted, the shape of an
instance, feature names) stands in a first line ``{"mipl": {...}}``, written only where it is needed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.columns import Columns
from mipl.io.lists import first_line
from mipl.io.raw import RawBags
from mipl.io.tabular import from_table

__all__ = ["read", "write"]


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`."""
    labels = dataset.label_names()
    with path.open("w", encoding="utf-8") as file:
        extra = _what_lines_lose(dataset)
        if extra:
            file.write(json.dumps({"mipl": extra}) + "\n")
        for i, (instances, candidates) in enumerate(zip(dataset.bags, dataset.candidate_sets(), strict=True)):
            row: dict[str, Any] = {
                "bag_id": dataset.bag_ids[i].item(),
                "instances": instances.tolist(),
                "candidates": candidates,
            }
            if dataset.candidate_weights is not None:
                row["weights"] = dataset.candidate_weights[i][dataset.candidates[i]].tolist()
            if labels is not None:
                row["label"] = labels[i]
            if dataset.instance_labels is not None:
                start, end = dataset.bags.offsets[i : i + 2]
                row["instance_labels"] = dataset.instance_labels[start:end].tolist()
            if dataset.groups is not None:
                row["group"] = dataset.groups[i].item()
            file.write(json.dumps(row) + "\n")


def _what_lines_lose(dataset: MIPLDataset) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    used = dataset.candidates.any(axis=0)
    if not used.all() or not np.array_equal(np.sort(dataset.classes), dataset.classes):
        extra["classes"] = dataset.classes.tolist()
    if dataset.bags.instance_shape != (dataset.bags.n_features,):
        extra["instance_shape"] = list(dataset.bags.instance_shape)
    if dataset.background is not None:
        extra["background"] = dataset.background
    if dataset.bags.feature_names is not None:
        extra["feature_names"] = list(dataset.bags.feature_names)
    return extra


def read(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read bags from the content of a file.

    Parameters
    ----------
    data : bytes
        The content, not compressed.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    extra: Any = {}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: line {number} is not JSON ({first_line(error)})") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: line {number} is not a JSON object; write one bag or instance per line")
        if number == 1 and set(row) == {"mipl"} and isinstance(row["mipl"], dict):
            extra = row["mipl"]
        else:
            rows.append(row)
    if not rows:
        raise DataError(f"{where} has no lines: the data set is empty")
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = {}
    for name in names:
        cells = [_number_lists(row.get(name)) if name == "instances" else row.get(name) for row in rows]
        try:
            arrays[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError) as error:
            raise DataError(f"{where}: the values of {name!r} are not of one kind ({first_line(error)})") from error
    return from_table(pa.table(arrays), where, columns, extra)


def _number_lists(cell: Any) -> Any:
    """Instances as floats: JSON writes 1 for 1.0, and Arrow does not mix them in lists."""
    try:
        return [[None if v is None else float(v) for v in row] for row in cell]
    except (TypeError, ValueError):
        return cell
