"""Text with one row per instance, for people with a spreadsheet: CSV, TSV, with semicolons and decimal commas.

Columns: ``bag_id``, ``candidates`` (``"a|b"``, with votes or weights ``"a:3|b:1"``; empty where nothing is known, so
that all classes are candidates; see `mipl.votes.read_entry` for names with a ``:``), optionally ``label`` (empty where
unknown), ``instance_label`` (class index, q for negative, -1 for unknown) and ``group``; the other columns of numbers
are features, and their names are the feature names; only ``f0, f1, ...`` stand for features without names. Rows of a
bag may lie anywhere; candidates, label and group must agree in all of them or be empty. What the columns would lose (a
class that is nobody's candidate, an order of classes other than sorted, the background class, ids that only look like
numbers, the shape of an instance, features that are called ``f0, f1, ...`` or look like something else) stands in a
first line ``# mipl {json}``, written only where it is needed.

pyarrow reads the rows; the encoding, the separator, the decimal mark and the names of the columns are found in the
first lines.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import Problem, first_line, open_decompressed
from mipl.io.cells import MISSING, as_numbers, reads_as_number
from mipl.io.columns import KNOWN_COLUMNS, find_roles, has_role_name, non_feature
from mipl.io.options import Columns
from mipl.io.raw import RawBags
from mipl.io.table import from_table, read_metadata
from mipl.votes import join_votes, split_vote

__all__ = [
    "BLOCK_BYTES",
    "MARK",
    "Head",
    "OpenText",
    "as_utf8",
    "decimal_mark",
    "encoding_of",
    "find_lines",
    "latin_remark",
    "open_text",
    "read",
    "read_head",
    "read_rows",
    "read_start",
    "write",
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


_LEAST_BLOCK = 1 << 20  #: bytes of a file that are parsed at once, at least
_LONGEST_CELL = 131_072  #: what Python's reader takes; another limit would be one of the whole process


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
    features = _feature_columns(dataset.bags)
    if max(map(len, [*ids.tolist(), *joined.tolist(), *features])) > _LONGEST_CELL:
        raise DataError(f"a cell would have more than {_LONGEST_CELL:,} characters; save as .parquet")
    columns: dict[str, Any] = {"bag_id": dataset.bags.spread(ids), "candidates": dataset.bags.spread(joined)}
    if dataset.labels is not None:
        known = np.where(dataset.labels >= 0, names[dataset.labels], "")
        columns["label"] = dataset.bags.spread(known)
    if dataset.instance_labels is not None:
        columns["instance_label"] = dataset.instance_labels
    if dataset.groups is not None:
        columns["group"] = dataset.bags.spread(dataset.groups)
    for name, values in zip(features, dataset.bags.instances.T, strict=True):
        columns[name] = np.ascontiguousarray(values)
    extra = _what_columns_lose(dataset)
    with path.open("wb") as file:
        if extra:
            file.write(f"{MARK}{json.dumps(extra)}\n".encode())
        pyarrow.csv.write_csv(pa.table(columns), file)


def _what_columns_lose(dataset: MIPLDataset) -> dict[str, Any]:
    used = dataset.candidates.any(axis=0)
    implied = as_numbers(sorted(dataset.classes[used].astype(str).tolist()))
    extra: dict[str, Any] = {}
    if dataset.bags.feature_names == _unnamed(dataset.bags.n_features):
        extra["feature_names"] = "given"
    if _would_be_left_out(dataset):
        extra["features"] = "all"
    ambiguous = any(split_vote(name) or name[0] in "[{(" for name in dataset.classes.astype(str).tolist())
    if ambiguous or not used.all() or not np.array_equal(np.sort(implied), dataset.classes):
        extra["classes"] = dataset.classes.tolist()
    if dataset.candidate_weights is not None:
        extra["weights"] = True
    if dataset.background is not None:
        extra["background"] = dataset.background
    if dataset.bag_ids.dtype.kind == "U" and as_numbers(dataset.bag_ids.tolist()).dtype.kind != "U":
        extra["bag_id"] = "string"
    if dataset.bags.instance_shape != (dataset.bags.n_features,):
        extra["instance_shape"] = list(dataset.bags.instance_shape)
    return extra


def read(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read bags from the content of a text file.

    Parameters
    ----------
    data : bytes
        The content, not compressed.
    where : str
        What errors call the file; a name in ``.tsv`` means tabs.
    columns : Columns
        What the user says about the columns.
    """
    text, remarks = as_utf8(data, where)
    head = read_head(text, where, columns)
    decimal, kinds = _kinds(where, head, columns)
    try:
        table, skipped = _read_table(text, head, decimal, kinds)
    except (pa.ArrowException, UnicodeDecodeError):
        # Some cell is no number. As text all cells can be read, and the one at fault named by its line.
        try:
            table, skipped = _read_table(text, head, decimal, dict.fromkeys(head.names, pa.string()))
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{where}: {first_line(error)}") from error
    lines, problem = find_lines(text, head, where, table.num_rows, bool(skipped))
    if problem is not None and table.num_rows == 0:
        raise DataError(str(problem))
    raw = from_table(table, where, columns, head.extra, lines=lines, text=True, decimal=decimal)
    raw.remarks += remarks
    if problem is not None:
        raw.problems.insert(0, problem)
    return raw


def _read_table(
    text: bytes, head: Head, decimal: str, kinds: dict[str, pa.DataType]
) -> tuple[pa.Table, list[pyarrow.csv.InvalidRow]]:
    """All rows of a text, and those that have too many or too few cells and were skipped."""
    skipped: list[pyarrow.csv.InvalidRow] = []

    def skip(row: pyarrow.csv.InvalidRow) -> str:
        skipped.append(row)
        return "skip"

    options = _options(head, decimal, kinds, skip, b'"' in text)
    return pyarrow.csv.read_csv(pa.BufferReader(text), **options), skipped


@dataclass(frozen=True)
class OpenText:
    """A large text file that is read piece by piece."""

    tables: Iterator[pa.Table]  #: its rows; a cell that is no number where the first ones are numbers is an error
    extra: dict[str, Any]  #: the metadata of mipl
    decimal: str
    top: int | None  #: the line of the first row; None where rows may be of several lines, so that they are not counted
    remarks: list[str]


def open_text(path: Path, columns: Columns, rows: int) -> OpenText:
    """Open a large file to read it piece by piece.

    Parameters
    ----------
    path : Path
        The file, compressed where its suffix says so.
    columns : Columns
        What the user says about the columns.
    rows : int
        About how many rows a piece has.
    """
    where = str(path)
    encoding = encoding_of(path)
    with open_decompressed(path) as file:
        start = read_start(file) + file.read(8)  # a line that is cut off is left out
    if encoding == "utf-8":
        text = start.removeprefix(codecs.BOM_UTF8)
    else:
        text = start.decode(encoding, errors="replace").encode()
    head = read_head(text, where, columns)
    decimal, kinds = _kinds(where, head, columns)
    quoted = b'"' in text
    row_bytes = max(1, len(start) // max(1, start.count(b"\n")))

    def tables() -> Iterator[pa.Table]:
        try:
            block = max(_LEAST_BLOCK, rows * row_bytes)
            options = _options(head, decimal, kinds, quoted=quoted, block=block, encoding=encoding)
            with open_decompressed(path) as file, pyarrow.csv.open_csv(file, **options) as reader:
                for batch in reader:
                    for i in range(0, batch.num_rows, rows):
                        yield pa.Table.from_batches([batch.slice(i, rows)])
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(f"{where}: {_told(error)}; 'mipl check' names the place") from error

    remarks = [latin_remark(where)] if encoding == "cp1252" else []
    return OpenText(tables(), head.extra, decimal, None if quoted else head.skip + 1, remarks)


def _told(error: BaseException) -> str:
    """An error of Arrow's reader; one that is about the number of cells in the words of a spreadsheet."""
    text = first_line(error)
    found = re.match(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): ?(.*)", text)
    if found is None:
        return text
    line, wanted, got, row = found.groups()
    place = "a line" if line is None else f"line {line}"
    return (
        f"{place} has {got} cells where there are {wanted} columns: {row[:100]!r}; complete the line, put a cell that "
        "contains the separator into quotes, or close a quote"
    )


def read_rows(data: bytes, where: str, columns: Columns) -> tuple[list[str], list[dict[str, str]]]:
    """The column names and the rows of a small table, all cells as text."""
    text, _ = as_utf8(data, where)
    head = read_head(text, where, columns)
    lines = io.StringIO("".join(text.decode().splitlines(keepends=True)[head.skip :]), newline="")
    rows = csv.reader(lines, delimiter=head.sep)
    return head.names, [dict(zip(head.names, map(str.strip, row), strict=False)) for row in rows if row]


def _would_be_left_out(dataset: MIPLDataset) -> bool:
    names = dataset.bags.feature_names
    if names is None:
        names = _unnamed(dataset.bags.n_features)
    return any(
        has_role_name(name) or non_feature(name, column) is not None
        for name, column in zip(names, dataset.bags.instances.T, strict=True)
    )


def _feature_columns(bags: Bags) -> tuple[str, ...]:
    if bags.feature_names is None:
        return _unnamed(bags.n_features)
    for name in bags.feature_names:
        if name in KNOWN_COLUMNS or any(c in name for c in '\n\r\0"'):
            raise DataError(f"the feature name {name!r} cannot be a CSV column; rename it or save as .parquet")
    return bags.feature_names


def _unnamed(n_features: int) -> tuple[str, ...]:
    return tuple(f"f{j}" for j in range(n_features))


def _numeric(j: int, rows: list[list[str]], decimal: str) -> bool:
    """Whether the sample of a column holds numbers and empty cells only."""
    cells = {row[j].strip() for row in rows if j < len(row)}.difference(MISSING)
    return bool(cells) and all(reads_as_number(cell, decimal) for cell in cells)


def _kinds(where: str, head: Head, columns: Columns) -> tuple[str, dict[str, pa.DataType]]:
    """The decimal mark and the types of the columns: numbers where the sample has them; bags and labels are text."""
    roles = find_roles(where, head.names, columns, exact=bool(head.extra))
    text = {*roles.values(), "instance_label", "group"}
    may = [j for j, name in enumerate(head.names) if name not in text]
    cells = [[row[j] for j in may if j < len(row)] for row in head.sample]
    own = "decimal" in columns.remembered and (head.extra or head.sep == columns.decimal)
    said = None if own else columns.decimal
    decimal = said or ("." if head.extra else decimal_mark(cells, head.sep))
    numeric = {head.names[j] for j in may if _numeric(j, head.sample, decimal)}
    return decimal, {name: pa.float64() if name in numeric else pa.string() for name in head.names}


def _options(
    head: Head,
    decimal: str,
    kinds: dict[str, pa.DataType],
    odd_row: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
    quoted: bool = False,
    block: int = BLOCK_BYTES,
    encoding: str = "utf-8",
) -> dict[str, Any]:
    """Arguments of Arrow's readers of text.

    Parameters
    ----------
    head : Head
        How the text is written.
    decimal : str
        The decimal mark.
    kinds : dict
        The types of the columns.
    odd_row : callable, default=None
        Called with a row of too many or too few cells, which is skipped then; None makes it an error.
    quoted : bool, default=False
        Whether cells may hold line ends, in quotes.
    block : int, default=BLOCK_BYTES
        Bytes that are parsed at once.
    encoding : str, default="utf-8"
        That of the text.
    """
    return {
        # One thread: only then does an error say which row is at fault.
        "read_options": pyarrow.csv.ReadOptions(
            use_threads=False, skip_rows=head.skip, column_names=head.names, block_size=block, encoding=encoding
        ),
        "parse_options": pyarrow.csv.ParseOptions(
            delimiter=head.sep, newlines_in_values=quoted, invalid_row_handler=odd_row
        ),
        "convert_options": pyarrow.csv.ConvertOptions(column_types=kinds, decimal_point=decimal, null_values=MISSING),
    }
