"""What stands in the cells of tables: Arrow's lists of numbers as arrays, and text as numbers, labels and candidates.

A number in text has ASCII digits and one decimal mark, no marks between thousands, no underscores. Candidates are
lists, ``a|b``, ``a:3|b:1``, or Python's and NumPy's way of printing a list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from mipl.bag_ids import as_bag_ids
from mipl.bag_lists import channels_last
from mipl.errors import DataError
from mipl.io.border import Problem
from mipl.votes import read_entry

__all__ = [
    "MISSING",
    "arrow_ids",
    "as_numbers",
    "candidate_cell",
    "candidates_or_problem",
    "depth",
    "edges",
    "is_list",
    "is_number",
    "is_number_type",
    "label_cell",
    "map_labels",
    "numbers_in_text",
    "reads_as_number",
    "restore_numbers",
    "vectors",
    "whole",
    "whole_number",
    "with_lists",
]


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


#: What stands for a value that is missing.
MISSING = (*pyarrow.csv.ConvertOptions().null_values, "None", "-", "?")
_NUMBER = {mark: rf"[+-]?([0-9]+({re.escape(mark)}[0-9]*)?|{re.escape(mark)}[0-9]+)([eE][+-]?[0-9]+)?" for mark in ".,"}
_INFINITE = "[+-]?(?i:inf(inity)?)"  #: read, and then refused as infinite


def reads_as_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a finite number with this decimal mark.

    >>> reads_as_number("-1.5e3"), reads_as_number("1.234", ","), reads_as_number("1_2"), reads_as_number("nan")
    (True, False, False, False)
    """
    return re.fullmatch(_NUMBER[decimal], text.strip()) is not None


def numbers_in_text(column: pa.Array, decimal: str = ".") -> tuple[NDArray[np.float64], dict[int, str]]:
    """Numbers (n,) out of text, NaN where there is none, and the cells that are neither a number nor missing."""
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING, text.type)), pa.scalar(None, text.type), text)
    number = pc.match_substring_regex(text, f"^({_NUMBER[decimal]}|{_INFINITE})$")
    odd = np.flatnonzero(pc.equal(number, False).fill_null(False).to_numpy(zero_copy_only=False))
    found = pc.replace_substring(pc.if_else(number, text, pa.scalar(None, text.type)), decimal, ".")
    values: NDArray[np.float64] = found.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values, {i: column[i].as_py() for i in odd.tolist()}


_WHOLE_NUMBERS = re.compile(r"\[\s*-?\d+(\s+-?\d+)*\s*\]")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
#: What Python prints in place of a character.
_ESCAPE = re.compile(r"\\(?:[\\'\"nrt]|x[\da-f]{2}|u[\da-f]{4}|U000[\da-f]{5}|U0010[\da-f]{4})")


def candidate_cell(
    value: Any, sep: str = "|", printed_lists: bool = True, bag: str = "a bag", classes: Collection[str] | None = None
) -> list[Any] | dict[Any, float]:
    """The labels of one cell, or labels with their weights; an empty list where the cell is empty.

    Parameters
    ----------
    value : str, int, float, list, dict or None
        What the cell holds.
    sep : str, default="|"
        What separates labels in a text.
    printed_lists : bool, default=True
        Whether ``"['a', 'b']"``, as pandas writes a column of lists, is read as a list.
    bag : str, default="a bag"
        What an error calls the bag.
    classes : collection of str, default=None
        The names of the classes where they are known, see `mipl.votes.read_entry`.

    Examples
    --------
    >>> candidate_cell("owl | wren"), candidate_cell("['owl', 'wren']"), candidate_cell(["owl"]), candidate_cell(None)
    (['owl', 'wren'], ['owl', 'wren'], ['owl'], [])
    >>> candidate_cell("owl:3|wren:1")
    {'owl': 3.0, 'wren': 1.0}
    """
    if isinstance(value, str):
        text = value.strip()
        if printed_lists and len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()"):
            found = _printed_list(text)
            if found is not None:
                return found
        return read_entry(bag, text.replace(sep, "|"), classes) or []
    if isinstance(value, list | tuple | set | np.ndarray):
        if len(value) and all(isinstance(each, tuple) for each in value):  # a map, as Arrow gives it
            return read_entry(bag, dict(value)) or []
        return [label for each in value if (label := label_cell(each, classes)) is not None]
    return read_entry(bag, label_cell(value) if isinstance(value, float) else value, classes) or []


def candidates_or_problem(
    value: Any,
    sep: str,
    printed_lists: bool,
    place: str,
    classes: Collection[str] | None,
    problems: list[Problem],
) -> list[Any] | dict[Any, float]:
    """The labels of one cell as `candidate_cell` reads it; what is wrong with it is added to `problems`.

    `place` says where the cell is.
    """
    try:
        return candidate_cell(value, sep, printed_lists, place, classes)
    except DataError as error:
        told = str(error).removeprefix(f"{place}: ")
        problems.append(Problem("candidates unreadable", "error", place, told))
        return (
            [part.strip() for part in value.replace(sep, "|").split("|") if part.strip()]
            if isinstance(value, str)
            else []
        )


def label_cell(value: Any, classes: Collection[str] | None = None) -> Any:
    """One label, None where it is unknown; 3.0 stands for 3, as spreadsheets and pandas write integers.

    Blanks around a text are not part of it, unless one of the `classes` that are known is called so.
    """
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value if classes and value in classes else value.strip() or None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.item() if isinstance(value, np.generic) else value


def _printed_list(text: str) -> list[Any] | None:
    names = [_ESCAPE.sub(lambda found: ast.literal_eval(f'"{found[0]}"'), a or b) for a, b in _QUOTED.findall(text)]
    if names and not _QUOTED.sub("", text[1:-1]).strip(" ,\n"):
        return names  # NumPy prints no commas, which Python would read as one long name
    if _WHOLE_NUMBERS.fullmatch(text):
        return [int(part) for part in text[1:-1].split()]
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    plain = isinstance(found, list | tuple | set) and all(isinstance(v, str | int) for v in found)
    return list(found) if plain else None


def restore_numbers(entries: list[Any], labels: list[Any] | None) -> tuple[list[Any], list[Any] | None]:
    """Turn labels that were text in a file of text into integers, if every candidate is one in its plain form."""
    flat = [label for entry in entries for label in entry]
    if not flat or not all(isinstance(v, int) or (isinstance(v, str) and is_number(v)) for v in flat):
        return entries, labels
    turned = None if labels is None else list(map(whole_number, labels))
    return [map_labels(entry, int) for entry in entries], turned


def map_labels(entry: Any, change: Callable[[Any], Any]) -> Any:
    """Change the labels of one bag, be they a list or have weights."""
    if isinstance(entry, dict):
        return {change(label): weight for label, weight in entry.items()}
    return [change(label) for label in entry]


def as_numbers(values: Sequence[str]) -> NDArray[Any]:
    """Integers if every string is one in its plain form, else the strings."""
    return np.array([int(v) for v in values]) if values and all(map(is_number, values)) else np.array(values, dtype=str)


def whole_number(value: Any) -> Any:
    """The integer that a text is in its plain form; any other value as it is."""
    return int(value) if isinstance(value, str) and is_number(value) else value


def is_number(value: str) -> bool:
    """Whether a text is an integer of 64 bits in its plain form: no sign but a minus, no zeros in front."""
    digits = value.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and len(digits) < 20
    return plain and str(int(value)) == value and -(2**63) <= int(value) < 2**63


_SAMPLE_CELLS = 20
_CHARACTERS = set("0123456789+-.eE,[] \t\r\nnaNulo")  # of numbers, lists, nan, null and None
_INNER = re.compile(r"\[([^\[\]]*)\]")
_MISSING_VALUES = ("nan", "NaN", "null", "None")


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
        table = table.set_column(j, name, pa.array([_parsed_list(cell, where, name) for cell in column.to_pylist()]))
    return table


def _looks_printed(cell: str) -> bool:
    text = cell.strip()
    return text.startswith("[") and text.endswith("]") and any(map(str.isdigit, text)) and set(text) <= _CHARACTERS


def _parsed_list(cell: str | None, where: str, name: str) -> list[float | None] | list[list[float | None]] | None:
    if cell is None or not cell.strip():
        return None
    try:
        rows = [
            [None if part in _MISSING_VALUES else float(part) for part in row.replace(",", " ").split()]
            for row in _INNER.findall(cell)
        ]
    except ValueError as error:
        raise DataError(f"{where}: {cell[:60]!r} in column {name!r} is no list of numbers") from error
    return rows if re.match(r"\s*\[\s*\[", cell) else rows[0] if rows else None
