"""Tables of answers: one row per bag or instance, as CSV, JSON lines, Parquet or an Excel workbook.

A spreadsheet runs a text that begins with ``= + - @``, a tab or a line end as a formula. Tables of answers put an
apostrophe before such a cell, which is how a spreadsheet itself marks text, and before a text that begins with an
apostrophe already; so taking off one apostrophe gives every cell back. Numbers, and texts that read as a number, are
left as they are. Data set files are never changed: they are for programs, and come back exactly.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from mipl.errors import DataError, UnavailableError
from mipl.io.atomic import atomic_path, check_writable, is_stream
from mipl.visible_text import visible

__all__ = [
    "TABLE_SUFFIXES",
    "check_table_path",
    "escaped_cell",
    "is_formula",
    "openpyxl",
    "rows_of",
    "unescaped_cell",
    "write_table",
    "write_tables",
]

#: Blanks count as nothing, since some programs cut them off; the full-width signs are formulas in East Asian locales.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula.

    >>> is_formula("=1+1"), is_formula("-cmd"), is_formula("-1.5"), is_formula("owl")
    (True, True, False, False)
    """
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def escaped_cell(text: str) -> str:
    """A text as a spreadsheet shows it and does not run it.

    >>> escaped_cell("=1+1"), escaped_cell("owl"), escaped_cell("'quoted")
    ("'=1+1", 'owl', "''quoted")
    """
    return f"'{text}" if text.startswith("'") or is_formula(text) else text


def unescaped_cell(text: str) -> str:
    """What `escaped_cell` was given, and any other cell with an apostrophe in front without it.

    >>> unescaped_cell("'=1+1"), unescaped_cell("owl")
    ('=1+1', 'owl')
    """
    return text.removeprefix("'")


def openpyxl() -> Any:
    """The package that reads and writes workbooks, or an error that says how to get it."""
    try:
        return import_module("openpyxl")
    except ImportError as error:
        raise UnavailableError("Excel files need openpyxl: pip install 'mipl[excel]'; or use .csv") from error


Columns = Mapping[str, Sequence[Any]]

_DECIMALS = 6
_EXCEL_ROWS = 1_048_576
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  #: characters that a workbook cannot hold


def write_table(columns: Columns, path: str | Path, *, raw: bool = False) -> Path:
    """Write columns of equal length; the suffix chooses the format, and a stream such as ``-`` gets CSV.

    CSV, JSON lines and Excel have numbers with six decimals, Parquet has them in full. In CSV a list is ``a|b``. What a
    spreadsheet would run as a formula is marked as text: in CSV by an apostrophe before it (`mipl.io.tables`), in
    Excel by the mark that an apostrophe sets there, which leaves the value as it is. A stream may be a terminal, so
    characters that would steer one are spelled out (`mipl.visible_text`).

    Parameters
    ----------
    columns : mapping from str to sequence
        Column name to the values of all rows.
    path : str or Path
        Where to write: .csv, .jsonl, .parquet, .xlsx (needs openpyxl), or ``-`` for standard output.
    raw : bool, default=False
        Whether CSV, Excel and streams have every text as it is, for programs that read names back.
    """
    return write_tables([columns], path, raw=raw)


def write_tables(chunks: Iterable[Columns], path: str | Path, *, raw: bool = False) -> Path:
    """Write tables with the same columns below each other, as they come, to one file; see `write_table`."""
    check_table_path(path)
    write = TABLE_SUFFIXES.get(Path(path).suffix.lower(), _write_csv)
    if is_stream(path) and not raw:
        chunks = map(_visible, chunks)
    with atomic_path(path) as temporary:
        write(chunks, temporary, raw)
    return Path(path)


def check_table_path(path: str | Path) -> None:
    """Refuse a path that no table can be written to, see `mipl.io.atomic.check_writable`."""
    check_writable(path, () if is_stream(path) else TABLE_SUFFIXES)
    if Path(path).suffix.lower() == ".xlsx":
        openpyxl()


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """One dictionary per row, numbers with six decimals."""
    rounded = [[round(v, _DECIMALS) if isinstance(v, float) else v for v in column] for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*rounded, strict=True)]


def _visible(columns: Columns) -> Columns:
    """The same columns with every name as a terminal may show it."""

    def shown(value: Any) -> Any:
        if isinstance(value, list):
            return [shown(each) for each in value]
        return visible(value) if isinstance(value, str) else value

    return {visible(name): [shown(value) for value in column] for name, column in columns.items()}


class _Lines:
    """Rows that end in a line feed.

    `csv.writer` quotes a cell for the sake of a carriage return only where its own rows end in one, and a bare one is a
    new row to a spreadsheet. So rows end in both, and here in the line feed alone.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


def _write_csv(chunks: Iterable[Columns], path: Path, raw: bool) -> None:
    def cell(value: Any) -> Any:
        text = "|".join(map(str, value)) if isinstance(value, list) else value
        return escaped_cell(text) if isinstance(text, str) and not raw else text

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(_Lines(file))
        for i, columns in enumerate(chunks):
            if i == 0:
                writer.writerow(map(cell, columns))
            for row in rows_of(columns):
                writer.writerow(map(cell, row.values()))


def _write_json_lines(chunks: Iterable[Columns], path: Path, raw: bool) -> None:
    with path.open("w", encoding="utf-8") as file:
        for columns in chunks:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(columns))


def _write_parquet(chunks: Iterable[Columns], path: Path, raw: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    file = path.open("wb")  # given a path, Arrow takes none that is not UTF-8
    try:
        for columns in chunks:
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            if writer is None:
                # Values that are all unknown in the first rows may be names in later ones, or the numbers of instances.
                unknown = {"instance": pa.int64()}
                kinds = [
                    f.with_type(unknown.get(f.name, pa.string())) if pa.types.is_null(f.type) else f
                    for f in table.schema
                ]
                schema = pa.schema(kinds)
                writer = pq.ParquetWriter(file, schema)
            try:
                writer.write_table(table.cast(schema))
            except (pa.ArrowInvalid, ValueError) as error:
                raise DataError(f"later rows are of another kind than the first ({error}); use .csv") from error
    finally:
        if writer is not None:
            writer.close()
        file.close()


def _write_excel(chunks: Iterable[Columns], path: Path, raw: bool) -> None:
    package = openpyxl()
    book = package.Workbook(write_only=True)
    sheet = book.create_sheet("answers")
    content = io.BytesIO()
    try:
        _fill(sheet, chunks, raw)
        book.save(content)
    except Exception:
        with suppress(Exception):
            sheet.close()  # else it is closed when it is forgotten, and prints a traceback where the disk is full
        raise
    path.write_bytes(content.getbuffer())


def _fill(sheet: Any, chunks: Iterable[Columns], raw: bool) -> None:
    package = openpyxl()
    written = 0
    for columns in chunks:
        rows: list[Iterable[Any]] = [row.values() for row in rows_of(columns)]
        written += len(rows)
        if written >= _EXCEL_ROWS:
            raise DataError(f"more than {_EXCEL_ROWS:,} rows do not fit into an Excel sheet; use .csv or .parquet")
        for row in rows if written > len(rows) else [list(columns), *rows]:
            cells = []
            for value in row:
                cell = package.cell.WriteOnlyCell(sheet, _excel_value(value))
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # a name such as =A1 is a text, not a formula,
                    cell.quotePrefix = not raw and is_formula(cell.value)  # also after somebody has edited the cell
                cells.append(cell)
            sheet.append(cells)


def _excel_value(value: Any) -> Any:
    if isinstance(value, list):
        value = "|".join(map(str, value))
    return _CONTROL.sub("\ufffd", value) if isinstance(value, str) else value


TABLE_SUFFIXES: dict[str, Callable[[Iterable[Columns], Path, bool], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
    ".xlsx": _write_excel,
}
