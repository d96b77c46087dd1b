"""How a table is written as text: encoding, separator, decimal mark, names of the columns, and the line of each row."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Columns, has_role_name
from mipl.io.compression import open_decompressed
from mipl.io.metadata import read_metadata
from mipl.io.numbers import reads_as_number
from mipl.io.problems import Problem

__all__ = [
    "BLOCK_BYTES",
    "MARK",
    "Head",
    "as_utf8",
    "decimal_mark",
    "encoding_of",
    "find_lines",
    "latin_remark",
    "read_head",
    "read_start",
]

MARK = "# mipl "  #: how a first line of mipl begins
BLOCK_BYTES = 16 << 20
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 200
_SAMPLE_LINES = 4  #: of mipl, of the column names, and two rows
_SHOWN = 5
#: What Excel writes above the column names, and reads there, to say what separates them.
_EXCEL_SEPARATOR = re.compile(r'"?sep=(.)"?[\r\n]+', re.IGNORECASE)


@dataclass(frozen=True)
class Head:
    """What the first lines of a text say about it."""

    extra: dict[str, Any]  #: the metadata of mipl; empty for files of others
    sep: str
    names: list[str]  #: of the columns
    sample: list[list[str]]  #: the first rows
    skip: int  #: lines above the rows


def as_utf8(data: bytes, where: str) -> tuple[bytes, list[str]]:
    """The content in UTF-8 without its mark, and what to say about the encoding."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode(), []
        except UnicodeDecodeError as error:
            raise DataError(f"{where} is not text ({error})") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.isascii():
        return data, []
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace").encode(), [latin_remark(where)]
    return data, []


def encoding_of(path: Path) -> str:
    """The encoding of a large text file, as `as_utf8` has it, read piece by piece: utf-8, utf-16 or cp1252."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_decompressed(path) as file:
        piece = file.read(BLOCK_BYTES)
        if piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        try:
            while piece:
                decoder.decode(piece)
                piece = file.read(BLOCK_BYTES)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def latin_remark(where: str) -> str:
    """What to say of a file that is not UTF-8."""
    return f"{where} is not UTF-8 and was read as Latin-1; if names look wrong, save it as UTF-8"


def read_head(text: bytes, where: str, columns: Columns) -> Head:
    """Find out how a text is written, from its first lines.

    Parameters
    ----------
    text : bytes
        The content, or the beginning of it, in UTF-8.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    start = read_start(io.BytesIO(text))
    sample = start.decode("utf-8", errors="ignore")
    if len(text) > len(start):
        sample = sample[: sample.rfind("\n") + 1]
    extra: dict[str, Any] = {}
    above, sep = 0, columns.sep
    if "sep" in columns.remembered and str(sep) not in sample.partition("\n")[0]:
        sep = None  # written by another program than the files that the model was fitted on
    if sample.startswith(MARK):
        first, _, sample = sample.partition("\n")
        above = 1
        extra = read_metadata(first[len(MARK) :], f"{where}, line 1")
        sep = sep or ","
    elif sample.startswith(f'"{MARK}'):
        raise DataError(
            f"{where}: a spreadsheet has rewritten the first line, in which mipl keeps what the columns cannot say; "
            "delete the line to read the rows alone, or edit the file as text"
        )
    elif (told := _EXCEL_SEPARATOR.match(sample)) is not None:
        sample = sample[told.end() :]
        above = 1
        sep = sep or told[1]
    sep = sep or _separator(sample, where, columns)
    try:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=sep)
        header = next(reader, [])
        skip = above + reader.line_num
        rows = [row for row, _ in zip(reader, range(_SAMPLE_ROWS), strict=False)]
    except csv.Error as error:
        raise DataError(f"{where} is not a table of text ({error})") from error
    if not header:
        raise DataError(f"{where} is empty; its first line must name the columns")
    names = _distinct(where, header if extra else [name.strip() for name in header])
    if len(names) == 1 and columns.sep is None and not extra:
        raise _single_column(where, names[0], [sep.join(row) for row in rows[:_SAMPLE_LINES] if row])
    return Head(extra, sep, names, rows, skip)


def _single_column(where: str, name: str, rows: list[str]) -> DataError:
    """The error for a first line in which nothing separates columns: another separator, or a title."""
    likely = max("|: ", key=name.count)
    separates = likely in name and all(row.count(likely) == name.count(likely) for row in rows)
    if not separates and any(mark in row for row in rows for mark in ",;\t"):
        told = f"the first line, {name[:100]!r}, does not name the columns; remove a title above them"
        return DataError(f"{where}: {told}")
    which = f"sep={likely!r} (--sep {likely!r})" if separates else "sep=... (--sep)"
    return DataError(f"{where} has a single column, {name[:100]!r}; say what separates the columns with {which}")


def read_start(file: BinaryIO) -> bytes:
    """The first bytes of a file: many, and some lines at least, of which those that name the columns may be long."""
    start = file.read(_SAMPLE_BYTES)
    while start.count(b"\n") < _SAMPLE_LINES and len(start) < BLOCK_BYTES and (more := file.read(len(start))):
        start += more
    return start


def _distinct(where: str, header: list[str]) -> list[str]:
    """Names of columns that differ; those without one are counted, as pandas does."""
    if header.count("") > 1:
        header = [name or f"Unnamed: {j}" for j, name in enumerate(header)]
    for name, count in Counter(header).items():
        if count > 1:
            raise DataError(f"{where} has the column {name!r} {count} times; rename one")
    return header


def _separator(sample: str, where: str, columns: Columns) -> str:
    """Comma, semicolon or tab: the one that finds the bag column, else the most columns."""
    wanted = columns.bag or "bag_id"

    def score(sep: str) -> tuple[bool, bool, int]:
        try:
            header = [name.strip() for name in next(csv.reader(io.StringIO(sample, newline=""), delimiter=sep), [])]
        except csv.Error:
            header = []
        return wanted in header, any(has_role_name(name, "bag") for name in header), len(header)

    return max("\t,;" if where.lower().endswith(".tsv") else ",;\t", key=score)


def decimal_mark(rows: list[list[Any]], sep: str = ",") -> str:
    """A comma where more columns of a sample are numbers with commas than numbers with points.

    A column of dates such as 12.05 beside ten of numbers such as 1,5 does not count for more than one. Who separates
    columns by semicolons needs the comma for something else, so that it is the mark where both are as many.
    """
    counts = {",": 0, ".": 0}
    for cells in zip_longest(*rows):
        texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
        for mark in counts:
            with_mark = any(mark in text for text in texts)
            counts[mark] += with_mark and sum(reads_as_number(text, mark) for text in texts) > len(texts) / 2
    return "," if counts[","] > counts["."] or (sep == ";" and counts[","] == counts["."] > 0) else "."


def find_lines(
    text: bytes, head: Head, where: str, n_rows: int, skipped: bool
) -> tuple[NDArray[np.int64], Problem | None]:
    """The line of each row, and what is wrong where rows were skipped that have too many or too few cells.

    Parameters
    ----------
    text : bytes
        The content in UTF-8.
    head : Head
        How it is written.
    where : str
        What the problem calls the file.
    n_rows : int
        How many rows were read.
    skipped : bool
        Whether there are rows that were not.
    """
    counted = np.arange(n_rows) + head.skip + 1
    n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if not skipped and n_lines == n_rows + head.skip:
        return counted, None
    # Empty lines, and cells of several lines.
    lines: list[int] = []
    odd: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=head.sep)
    before = 0
    try:
        for row in reader:
            if before >= head.skip and row:
                if len(row) == len(head.names):
                    lines.append(before + 1)
                else:
                    odd.append((before + 1, row))
            before = reader.line_num
    except csv.Error:
        return counted, None
    return np.array(lines) if len(lines) == n_rows else counted, _odd_rows(odd, head, where)


def _odd_rows(odd: list[tuple[int, list[str]]], head: Head, where: str) -> Problem | None:
    if not odd:
        return None
    line, row = odd[0]
    others = ""
    if len(odd) > 1:
        shown = ", ".join(str(each) for each, _ in odd[1:_SHOWN])
        rest = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
        others = f"; {len(odd) - 1} more are too long or too short: line {shown}{rest}"
    message = (
        f"line {line} has {len(row)} cells where there are {len(head.names)} columns: "
        f"{head.sep.join(row)[:100]!r}{others}"
    )
    remedy = "complete the line, put a cell that contains the separator into quotes, or close a quote"
    return Problem("cells missing", "error", where, message, remedy)
