"""Arrow's lists of numbers, of any kind and depth, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.bag_ids import as_bag_ids
from mipl.bag_lists import channels_last
from mipl.errors import DataError

__all__ = ["arrow_ids", "depth", "edges", "is_list", "is_number_type", "vectors", "whole"]


def whole(table: pa.Table, column: str) -> pa.Array:
    """A column in one piece; extension types and dictionaries give what they store."""
    array = table[column].combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def arrow_ids(where: str, column: pa.Array) -> NDArray[Any]:
    """Bag ids (m,) of a column without missing values, see `mipl.bag_ids.as_bag_ids`."""
    kind = column.type
    if pa.types.is_integer(kind):
        return as_bag_ids(column.to_numpy(zero_copy_only=False), where)
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_floating(kind)):
        raise DataError(f"{where}: the bag ids are of type {kind}; they must be integers or text")
    return as_bag_ids(column.to_pylist(), where)


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list, of whatever kind."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number_type(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def depth(kind: pa.DataType) -> int:
    """How many lists lie around the numbers of a type; 0 for a number, -1 where there are no numbers inside.

    A list of records of numbers counts as a list of lists.
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if is_number_type(kind):
        return 0
    if pa.types.is_struct(kind):
        return 1 if kind.num_fields and all(is_number_type(f.type) for f in kind) else -1
    inner = depth(kind.value_type) if is_list(kind) else -1
    return -1 if inner < 0 else inner + 1


def edges(column: pa.Array) -> NDArray[np.int64]:
    """Offsets of a list array from 0, whatever kind of list it is."""
    if pa.types.is_fixed_size_list(column.type):
        return np.arange(len(column) + 1) * int(column.type.list_size)
    offsets: NDArray[np.int64] = column.offsets.to_numpy().astype(np.int64)
    return offsets - int(offsets[0])


def vectors(rows: pa.Array, call: Callable[[int], str]) -> tuple[NDArray[Any], tuple[int, ...], tuple[str, ...] | None]:
    """Numbers (n, d), the shape of one row before it was flattened, and names where the rows are records.

    Parameters
    ----------
    rows : pyarrow.Array
        Lists of numbers, lists of lists of numbers, ..., or records of numbers, all of one length.
    call : callable
        What an error calls row i.
    """
    names = None
    shape: list[int] = []
    owner = np.arange(len(rows))  # the row that each inner list belongs to
    while is_list(rows.type) or pa.types.is_struct(rows.type):
        if rows.null_count:
            i = int(owner[np.flatnonzero(rows.is_null().to_numpy(zero_copy_only=False))[0]])
            raise DataError(f"{call(i)} is missing; leave it out")
        if pa.types.is_struct(rows.type):
            names = tuple(field.name for field in rows.type)
            parts = [_numbers(part) for part in rows.flatten()]
            return np.stack(parts, axis=1).reshape(len(rows), -1), (len(names),), names
        widths = np.diff(edges(rows))
        if len(widths) and (widths != widths[0]).any():
            bad = int(np.flatnonzero(widths != widths[0])[0])
            raise DataError(f"{call(int(owner[bad]))} has {widths[bad]} values, the first has {widths[0]}")
        shape.append(int(widths[0]) if len(widths) else 0)
        owner = np.repeat(owner, widths)
        rows = rows.flatten()
    d = int(np.prod(shape))
    if d == 0:
        raise DataError(f"{call(0)} has no features")
    return *channels_last(_numbers(rows).reshape(-1, d), tuple(shape)), names


def _numbers(values: pa.Array) -> NDArray[Any]:
    """A flat array of numbers; NaN where a value is missing."""
    if not is_number_type(values.type):
        raise DataError(f"the values are of type {values.type}, not numbers")
    if not pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    array = values.to_numpy(zero_copy_only=False)
    numbers: NDArray[Any] = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    return numbers
