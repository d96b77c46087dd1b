"""Lists of numbers that a program printed into a cell of text: ``[0.1, 0.2]`` of Python, ``[0.1 0.2]`` of NumPy."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

import pyarrow as pa

from mipl.errors import DataError
from mipl.io.lists import whole

__all__ = ["with_lists"]

_SAMPLE_CELLS = 20
_CHARACTERS = set("0123456789+-.eE,[] \t\r\nnaNulo")  # of numbers, lists, nan, null and None
_INNER = re.compile(r"\[([^\[\]]*)\]")
_MISSING = ("nan", "NaN", "null", "None")


def with_lists(table: pa.Table, where: str, apart: Collection[str | None]) -> pa.Table:
    """The table with columns of lists in place of columns of text that hold printed lists of numbers.

    Parameters
    ----------
    table : pyarrow.Table
        Its columns are looked at.
    where : str
        What errors call the file.
    apart : collection of str or None
        Columns that stay as they are: bag, candidates, ...
    """
    for j, name in enumerate(table.column_names):
        if name in apart or not pa.types.is_string(table.schema.field(name).type):
            continue
        column = whole(table, name)
        sample = list(islice((cell.as_py() for cell in column.drop_null() if cell.as_py().strip()), _SAMPLE_CELLS))
        if not sample or not all(map(_looks_printed, sample)):
            continue
        if any("..." in cell for cell in sample):
            raise DataError(
                f"{where}: the lists in column {name!r} were shortened when they were printed ('...'); write the table "
                "as .parquet, which keeps them whole"
            )
        table = table.set_column(j, name, pa.array([_parsed(cell, where, name) for cell in column.to_pylist()]))
    return table


def _looks_printed(cell: str) -> bool:
    text = cell.strip()
    return text.startswith("[") and text.endswith("]") and any(map(str.isdigit, text)) and set(text) <= _CHARACTERS


def _parsed(cell: str | None, where: str, name: str) -> list[float | None] | list[list[float | None]] | None:
    if cell is None or not cell.strip():
        return None
    try:
        rows = [
            [None if part in _MISSING else float(part) for part in row.replace(",", " ").split()]
            for row in _INNER.findall(cell)
        ]
    except ValueError as error:
        raise DataError(f"{where}: {cell[:60]!r} in column {name!r} is no list of numbers") from error
    return rows if re.match(r"\s*\[\s*\[", cell) else rows[0] if rows else None
