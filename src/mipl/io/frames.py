"""Tables in memory, of pandas, polars, pyarrow or Hugging Face's `datasets`, read as files are."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa

from mipl.arrays import as_pandas, is_hugging_face
from mipl.errors import DataError
from mipl.io.columns import Columns
from mipl.io.raw import RawBags
from mipl.io.tabular import from_table, metadata
from mipl.votes import SET_WEIGHT

__all__ = ["read"]

_WHERE = "the table"


def read(frame: Any, columns: Columns) -> RawBags:
    """Read bags from a table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table, or Dataset of Hugging Face's `datasets`
        One row per instance or one row per bag. The index of a pandas frame is a column where it has a name.
    columns : Columns
        What the user says about the columns.
    """
    table = _arrow(frame)
    raw = from_table(table, _WHERE, columns, metadata(table, _WHERE), decimal=columns.decimal or ".")
    raw.name = ""
    if not raw.roles.usual:
        raw.remarks.insert(0, f"{_WHERE}: {raw.roles.remark()}")
    return raw


def _arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if is_hugging_face(frame):
        if not hasattr(frame, "features") or not hasattr(frame, "num_rows"):
            raise DataError(f"a {type(frame).__name__} is no table; choose one part of it, such as dataset['train']")
        # Its names of classes are in the metadata of the schema.
        return frame.with_format("arrow")[:].replace_schema_metadata(frame.features.arrow_schema.metadata)
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    frame = as_pandas(frame)
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=named) if named else frame
    columns = [_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return pa.table(columns, names=[str(name) for name in frame.columns])


def _column(series: Any) -> pa.Array:
    try:
        found = pa.array(series, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return _objects(series.to_list())


def _objects(cells: list[Any]) -> pa.Array:
    """Cells that Arrow does not know: sets of labels, labels with weights, images, or a mixture of kinds."""
    if any(isinstance(cell, Mapping) for cell in cells):
        return _maps(cells)
    plain = [_plain(cell) for cell in cells]
    try:
        return pa.array(plain, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a mixture; the reader of the column says what it cannot use
        return pa.array([None if cell is None or cell != cell else str(cell) for cell in plain])


def _maps(cells: list[Any]) -> pa.Array:
    """Labels with weights; a plain set among them gives each of its labels the same weight."""
    found: list[Any] = []
    for cell in cells:
        if isinstance(cell, Mapping):
            found.append([(key, None if weight is None else float(weight)) for key, weight in cell.items()])
        elif isinstance(cell, Set | list | tuple | np.ndarray):
            found.append([(label, SET_WEIGHT) for label in _plain(cell)])
        else:
            found.append(None if cell is None or cell != cell else [(cell, SET_WEIGHT)])
    keys = {type(key) for cell in found if cell for key, _ in cell}
    kind = pa.int64() if keys and keys <= {int, np.int64} else pa.string()
    named = [None if cell is None else [(k if kind == pa.int64() else str(k), w) for k, w in cell] for cell in found]
    return pa.array(named, pa.map_(kind, pa.float64()))


def _plain(cell: Any) -> Any:
    if isinstance(cell, Set):
        return sorted(cell, key=str)
    return cell.tolist() if isinstance(cell, np.ndarray) else cell
