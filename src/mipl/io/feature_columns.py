"""Which columns of a table with one row per instance are features: numbers of their own, or one column of lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Columns, by_reason, non_feature, taken_names, unknown_to_model
from mipl.io.lists import depth, is_number_type, vectors, whole
from mipl.io.numbers import numbers_in_text

__all__ = ["Features"]

#: A text column is one of numbers with some cells that are none if at least this share of its cells are numbers.
_NUMERIC_SHARE = 0.5
_SAMPLE_CELLS = 200
_AS_NUMBERS = "text: numbers with "  #: how the reason begins where a column of text looks like numbers
_WRITTEN_NUMBERS = {
    what: re.compile(pattern)
    for what, pattern in {
        "a decimal comma": r"[+-]?\d*,?\d+",
        "a decimal point": r"[+-]?\d*\.?\d+",
        "marks between thousands": r"[+-]?(\d{1,3}([.,' ]\d{3})+([.,]\d+)?|\d+([.,]\d+)?)",
        "a unit": r"[+-]?\d*[.,]?\d+(?P<unit>\s*%|\s+[^\W\d]{1,4}|\s*°\w?|\s*[µmk]?(m|s|g|Hz|dB))",
    }.items()
}


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
        def place(row: int) -> str:
            return f"row {row}" if lines is None else f"line {lines[row]}"

        self.left_out: dict[str, str] = {}
        self.odd_cells: dict[str, tuple[str, str]] = {}
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
            self._take_list(table, where, names, lists, place)
            return
        scalars: dict[str, NDArray[Any]] = {}
        for name in names:
            values, odd = _column(whole(table, name), decimal, asked or own)
            if values is None:
                if asked:
                    raise DataError(f"{where}: the column {name!r} is {table.schema.field(name).type}, not numbers")
                self.left_out[name] = odd if isinstance(odd, str) else _kind_of_text(list(odd.values()))
                if self.left_out[name].startswith(_AS_NUMBERS):
                    row, cell = next(iter(odd.items()))
                    self.odd_cells[name] = (place(row), cell)
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
        self, table: pa.Table, where: str, names: list[str], lists: list[str], place: Callable[[int], str]
    ) -> None:
        if len(lists) > 1:
            raise DataError(
                f"{where} has {len(lists)} columns of lists: {', '.join(map(repr, lists))}; say which one holds the "
                "features with features=NAME (on the command line --features NAME)"
            )
        name = lists[0]
        self.left_out |= {other: f"the features are the lists {name!r}" for other in names if other != name}

        def call(row: int) -> str:
            return f"{where}: {place(row)}, column {name!r}"

        self.values, self.shape, self.names = vectors(whole(table, name), call)
        self.columns, self.in_lists = (name,), self.shape


def _are_numbered(names: list[str]) -> bool:
    return names == [f"f{j}" for j in range(len(names))]


def _column(column: pa.Array, decimal: str, must: bool) -> tuple[Any, Any]:
    """Numbers (n,) of a column with the cells that are none, or None with the cells or another reason."""
    if is_number_type(column.type):
        if pa.types.is_float32(column.type) and not column.null_count:
            return column.to_numpy(zero_copy_only=False), None
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, odd = numbers_in_text(column, decimal)
        filled = int(np.isfinite(values).sum())
        if must or (filled and filled >= _NUMERIC_SHARE * (filled + len(odd))):
            return values, odd
        return None, odd or "empty"
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
            return f"{_AS_NUMBERS}{what}"
    return "text"


def _why_not(name: str, values: NDArray[Any]) -> str | None:
    if np.isnan(values).all():
        return "empty"
    return non_feature(name, values)
