"""Excel workbooks: the first sheet with one row per instance, as in CSV; needs openpyxl."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.columns import listed_names
from mipl.io.options import Columns
from mipl.io.raw import RawBags
from mipl.io.table import from_table
from mipl.io.tables import openpyxl
from mipl.io.text import decimal_mark

__all__ = ["Sheet", "read", "read_sheet"]

_SAMPLE_ROWS = 200


def read(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read bags from the first sheet of a workbook.

    Parameters
    ----------
    data : bytes
        The content of the file.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    sheet = read_sheet(data, where, columns.decimal)
    # A cell is a number or a text by its type, but names of bags and labels may be numbers: 7.0 is 7.
    raw = from_table(sheet.table, where, columns, lines=sheet.lines, text=True, decimal=sheet.decimal)
    raw.remarks += sheet.remarks
    return raw


@dataclass(frozen=True)
class Sheet:
    """The first sheet of a workbook."""

    table: pa.Table
    lines: NDArray[np.int64]  #: the row of the sheet that each row of the table is, counted from 1
    decimal: str  #: the decimal mark of cells that are text
    remarks: list[str]


def read_sheet(data: bytes, where: str, decimal: str | None = None) -> Sheet:
    """Read the first sheet of a workbook; its first row that is not empty names the columns.

    Parameters
    ----------
    data : bytes
        The content of the file.
    where : str
        What errors call the file.
    decimal : str, default=None
        The decimal mark of cells that are text; None detects it.
    """
    package = openpyxl()
    with border(where, "an .xlsx workbook"):
        book = package.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # rows end at their last cell, wherever the sheet says that it ends
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        others = [each.title for each in book.worksheets[1:]]
        title = sheet.title
    top = next((i for i, row in enumerate(rows) if any(cell is not None for cell in row)), None)
    if top is None:
        raise DataError(f"{where}: the first sheet is empty; its first row must name the columns")
    width = max(j for row in rows for j, cell in enumerate(row) if cell is not None) + 1
    header = [_name(cell, j) for j, cell in enumerate([*rows[top], *[None] * width][:width])]
    body = [[*row, *[None] * width][:width] for row in rows[top + 1 :]]
    mark = decimal or decimal_mark(body[:_SAMPLE_ROWS])
    table = pa.Table.from_arrays([_array([row[j] for row in body], mark) for j in range(width)], names=header)
    remarks = [f"{where}: read from the first sheet, {title!r}; not read: {listed_names(others)}"] if others else []
    return Sheet(table, np.arange(len(body)) + top + 2, mark, remarks)


def _name(cell: Any, j: int) -> str:
    return f"Unnamed: {j}" if cell is None or not str(cell).strip() else str(cell).strip()


def _array(cells: list[Any], decimal: str) -> pa.Array:
    """Numbers where all cells are, else text; dates and truth values as Excel shows them."""
    if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array([None if cell is None else _text(cell, decimal) for cell in cells], pa.string())


def _text(cell: Any, decimal: str) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else str(cell).replace(".", decimal)
    return str(cell)
