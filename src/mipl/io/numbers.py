"""Numbers that are written as text: ASCII digits with one decimal mark, no marks between thousands, no underscores."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

__all__ = ["MISSING", "numbers_in_text", "reads_as_number"]

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
