"""Which columns of a table with one row per instance are features: numbers of their own, or one column of lists."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Columns, by_reason, non_feature, taken_names, unknown_to_model
from mipl.io.lists import depth, is_number_type, vectors, whole

__all__ = ["NUMBERS_AS_TEXT", "Features", "numbers_in_text"]

#: A text column is one of numbers with some cells that are none if at least this share of its cells are numbers.
_NUMERIC_SHARE = 0.5
_SAMPLE_CELLS = 200
NUMBERS_AS_TEXT = "text: numbers with "  #: how the reason begins where a column of text looks like numbers
_WRITTEN_NUMBERS = {
    what: re.compile(pattern)
    for what, pattern in {
        "a decimal comma": r"[+-]?\d*,?\d+",
        "a decimal point": r"[+-]?\d*\.?\d+",
        "marks between thousands": r"[+-]?(\d{1,3}([.,' ]\d{3})+([.,]\d+)?|\d+([.,]\d+)?)",
        "a unit": r"[+-]?\d*[.,]?\d+(?P<unit>\s*%|\s+[^\W\d]{1,4}|\s*°\w?|\s*[µmk]?(m|s|g|Hz|dB))",
    }.items()
}
_UNKNOWN = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?")


class Features:
    """The feature columns of a table, and what was left out."""

    def __init__(
        self,
        table: pa.Table,
        where: str,
        columns: Columns,
        roles: dict[str, str | None],
        own: bool,
        decimal: str,
        lines: NDArray[np.int64] | None = None,
    ) -> None:
        self.left_out: dict[str, str] = {}
        self.texts: dict[tuple[int, int], str] = {}
        self.shape: tuple[int, ...] | None = None
        self.in_lists: tuple[int, ...] | None = None
        self.names: tuple[str, ...] | None
        taken = {name for name in roles.values() if name is not None}
        taken |= {name for name in ("instance_label", "group") if name in table.column_names}
        names = [name for name in table.column_names if name not in taken]
        if columns.ignore is not None:
            for name in taken_names(where, table.column_names, columns.ignore, "ignore"):
                if name in names:
                    names.remove(name)
                    self.left_out[name] = "as asked"
        asked = columns.features is not None
        if columns.features is not None:
            wanted = taken_names(where, table.column_names, columns.features, "features")
            wanted = [name for name in wanted if name not in roles.values() and name not in self.left_out]
            self.left_out |= {name: "not asked for" for name in names if name not in wanted}
            names = wanted
        lists = [name for name in names if depth(table.schema.field(name).type) > 0]
        # Columns f0, f1, ... stand for features without names, which a model takes by their number.
        if not asked and not lists and columns.model_features is not None and not _are_numbered(names):
            self.left_out |= unknown_to_model(where, names, columns.model_features)
            names, asked = list(columns.model_features), True
        if lists:
            self._take_list(table, where, names, lists, lines)
            return
        scalars: dict[str, NDArray[Any]] = {}
        for name in names:
            values, odd = _column(whole(table, name), decimal, asked or own)
            if values is None:
                if asked:
                    raise DataError(f"{where}: the column {name!r} is {table.schema.field(name).type}, not numbers")
                self.left_out[name] = odd
                continue
            why = None if asked or own else _why_not(name, values)
            if why is not None:
                self.left_out[name] = why
                continue
            if isinstance(odd, dict):
                self.texts |= {(i, len(scalars)): value for i, value in odd.items()}
            scalars[name] = values
        if not scalars:
            why = f"; not {by_reason(self.left_out)}" if self.left_out else ""
            raise DataError(f"{where} has no feature columns beside {sorted(taken)}{why}")
        self.columns = self.names = tuple(scalars)
        single = all(v.dtype == np.float32 for v in scalars.values())
        self.values = np.empty((table.num_rows, len(scalars)), dtype=np.float32 if single else np.float64)
        for j, column in enumerate(scalars.values()):
            self.values[:, j] = column

    def _take_list(
        self, table: pa.Table, where: str, names: list[str], lists: list[str], lines: NDArray[np.int64] | None
    ) -> None:
        if len(lists) > 1:
            raise DataError(
                f"{where} has {len(lists)} columns of lists: {', '.join(map(repr, lists))}; say which one holds the "
                "features with features=NAME (on the command line --features NAME)"
            )
        name = lists[0]
        self.left_out |= {other: f"the features are the lists {name!r}" for other in names if other != name}

        def call(row: int) -> str:
            place = f"row {row}" if lines is None else f"line {lines[row]}"
            return f"{where}: {place}, column {name!r}"

        self.values, self.shape, self.names = vectors(whole(table, name), call)
        self.columns, self.in_lists = (name,), self.shape


def _are_numbered(names: list[str]) -> bool:
    return names == [f"f{j}" for j in range(len(names))]


def _column(column: pa.Array, decimal: str, must: bool) -> tuple[Any, Any]:
    """Numbers (n,) of a column with the cells that are none, or None with the reason."""
    if is_number_type(column.type):
        if pa.types.is_float32(column.type) and not column.null_count:
            return column.to_numpy(zero_copy_only=False), None
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, odd = numbers_in_text(column, decimal)
        filled = int(np.isfinite(values).sum())
        if must or (filled and filled >= _NUMERIC_SHARE * (filled + len(odd))):
            return values, odd
        return None, _kind_of_text(list(odd.values())) if odd else "empty"
    if pa.types.is_null(column.type):
        return (np.full(len(column), np.nan), None) if must else (None, "empty")
    return None, str(column.type)


def _kind_of_text(cells: list[str]) -> str:
    """Why a column of text is no feature, with what keeps it from being one where it looks like numbers.

    >>> _kind_of_text(["loud", "soft"]), _kind_of_text(["1.234,5", "1.001,0"]), _kind_of_text(["10 kHz", "2.5 kHz"])
    ('text', 'text: numbers with marks between thousands', 'text: numbers with a unit')
    """
    some = [cell.strip() for cell in cells[:_SAMPLE_CELLS]]
    for what, pattern in _WRITTEN_NUMBERS.items():
        found = [pattern.fullmatch(cell) for cell in some]
        endings = {match["unit"] for match in found if match and "unit" in pattern.groupindex}
        if all(found) and len(endings) <= 1:
            return f"{NUMBERS_AS_TEXT}{what}"
    return "text"


def numbers_in_text(column: pa.Array, decimal: str = ".") -> tuple[NDArray[np.float64], dict[int, str]]:
    """Numbers (n,) out of text, NaN where there is none, and the cells that are neither a number nor empty."""
    text = pc.utf8_trim_whitespace(column)
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    unknown = pc.is_in(text, value_set=pa.array(_UNKNOWN, text.type))
    text = pc.if_else(unknown, pa.scalar(None, text.type), text)
    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False), {}
    except pa.ArrowInvalid:
        pass
    values = np.full(len(text), np.nan)
    odd = {}
    for i, cell in enumerate(text.to_pylist()):
        if cell is not None:
            try:
                values[i] = float(cell)
            except ValueError:
                odd[i] = column[i].as_py()
    return values, odd


def _why_not(name: str, values: NDArray[Any]) -> str | None:
    if np.isnan(values).all():
        return "empty"
    return non_feature(name, values)
