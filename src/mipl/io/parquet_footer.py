"""The footer of a Parquet file, checked before pyarrow is asked about its columns.

pyarrow's ``RowGroupMetaData.column`` and its filters on row groups end the whole program where a column's metadata
contradict the schema, as after one flipped bit. What they look at is read here first, from the footer itself (Thrift's
compact protocol, and the structures ``FileMetaData``, ``RowGroup``, ``ColumnChunk`` of Parquet's format specification).
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, NamedTuple

import pyarrow.parquet as pq

__all__ = ["Chunk", "column_chunks"]

_BOOLEANS, _BYTE, _NUMBERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
#: Fields by their numbers in the structures.
_ROW_GROUPS, _COLUMNS, _CRYPTO, _META_DATA = 4, 1, 8, 3
_TYPE, _NUM_VALUES, _UNCOMPRESSED, _STATISTICS, _SIZES = 1, 5, 6, 12, 16
_STATISTICS_VALUES = (1, 2, 5, 6)  # of old and of new kind, largest and smallest
_SIZES_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}


class Chunk(NamedTuple):
    """One column of one row group.

    Attributes
    ----------
    path : str, the name of the column, with those of what it lies in
    kind : str, Parquet's physical type
    num_values : int
    uncompressed : int, bytes of its pages before they are compressed
    """

    path: str
    kind: str
    num_values: int
    uncompressed: int


def column_chunks(file: BinaryIO, schema: pq.ParquetSchema) -> list[list[Chunk]]:
    """The columns of each row group.

    Parameters
    ----------
    file : binary file
        The open file, which is read from anywhere.
    schema : pyarrow.parquet.ParquetSchema
        What the footer says of the columns, as pyarrow has it.

    Raises
    ------
    ValueError
        The footer is damaged: its columns are not those of the schema.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(end - 8)
    length = int.from_bytes(file.read(4), "little")
    file.seek(end - 8 - length)
    try:
        groups = _Thrift(file.read(length)).struct().get(_ROW_GROUPS, [])
        columns = [_column(schema.column(j)) for j in range(len(schema))]
        return [_chunks(group[_COLUMNS], columns) for group in groups]
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("the footer does not describe row groups") from error


class _Column(NamedTuple):
    """What a column of the schema says of its chunks."""

    path: str
    kind: str
    width: int | None  #: bytes of a value, None where they differ
    repetitions: int  #: the number of levels
    definitions: int


def _column(column: Any) -> _Column:
    kind = column.physical_type
    width = column.length if kind == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS.get(kind)
    return _Column(column.path, kind, width, column.max_repetition_level + 1, column.max_definition_level + 1)


def _chunks(found: list[dict[int, Any]], columns: list[_Column]) -> list[Chunk]:
    if len(found) != len(columns):
        raise ValueError(f"a row group has {len(found)} columns, the schema {len(columns)}")
    chunks = []
    for each, column in zip(found, columns, strict=True):
        if _CRYPTO in each:
            raise ValueError(f"the column {column.path} is encrypted")
        told = each[_META_DATA]
        if told[_TYPE] != _TYPES.index(column.kind):
            raise ValueError(f"a row group has {column.path} in another type than the schema, {column.kind}")
        _check_statistics(told.get(_STATISTICS, {}), column)
        _check_sizes(told.get(_SIZES, {}), column)
        chunks.append(Chunk(column.path, column.kind, told[_NUM_VALUES], told[_UNCOMPRESSED]))
    return chunks


def _check_statistics(told: dict[int, Any], column: _Column) -> None:
    for field in _STATISTICS_VALUES:
        if field in told and column.width is not None and len(told[field]) != column.width:
            raise ValueError(f"the smallest and largest values of {column.path} have another width")


def _check_sizes(told: dict[int, Any], column: _Column) -> None:
    for field, levels in ((_REPETITIONS, column.repetitions), (_DEFINITIONS, column.definitions)):
        if told.get(field) and len(told[field]) != levels:
            raise ValueError(f"{column.path} has {len(told[field])} counts of levels where {levels} are due")
    if _SIZES_BYTES in told and column.kind != "BYTE_ARRAY":
        raise ValueError(f"{column.path} has sizes of texts and is none")


class _Thrift:
    """Reads structures as dictionaries by the number of the field."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._number()
            fields[number] = (head & 15) == 1 if head & 15 in _BOOLEANS else self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in _LISTS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(count)]
        if kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(count)]
        if kind in (*_BOOLEANS, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"the footer has a field of the unknown kind {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError("the footer ends within a field")
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("the footer has a number of more than 64 bits")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
