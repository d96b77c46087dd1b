"""Bag ids: integers of 64 bits or text, exactly as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.visible_text import is_text

__all__ = ["as_bag_ids"]

#: From here on a float stands for several integers.
_EXACT = 2**53


def as_bag_ids(ids: Sequence[Any] | NDArray[Any], where: str = "") -> NDArray[Any]:
    """Read ids as an array (m,) of int64 or of text.

    Whole numbers that are floats, as pandas has them where a value is missing, are integers. Integers beyond 64 bits
    with a sign become text, all of them, digit for digit; so do numbers with a fraction, dates and the like.

    Parameters
    ----------
    ids : sequence of m integers or strings
        The ids.
    where : str, default=""
        What an error calls their file.

    Raises
    ------
    DataError
        An id is missing, cannot be held exactly (bytes, floats from 2**53 on, a zero character at the end),
        or some are integers and others text; the message names the first one at fault.

    Examples
    --------
    >>> as_bag_ids([7, 2**40]), as_bag_ids([1, 2**64 - 1]).tolist()
    (array([            7, 1099511627776]), ['1', '18446744073709551615'])
    """
    array = ids if isinstance(ids, np.ndarray) else None
    if array is not None and array.dtype.kind in "UMm":
        return _whole_text(array.astype(str), where)
    if array is not None and array.dtype.kind in "iu":
        fits = array.dtype.kind == "i" or not array.size or int(array.max()) < 2**63
        return array.astype(np.int64) if fits else array.astype(str)
    given = list(ids) if array is None else array.tolist()
    values = [_plain(i, value, where) for i, value in enumerate(given)]
    if any(isinstance(value, float) and not value.is_integer() for value in given):
        values = list(map(str, given))  # numbers with a fraction, as text
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        one, other = (next(v for v in values if type(v) is kind) for kind in (int, str))
        raise DataError(f"{_of(where)}bag ids mix integers ({one}) and text ({other!r}); use one kind throughout")
    if kinds == {int} and all(-(2**63) <= int(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    return _whole_text(np.array(list(map(str, values)), dtype=str), where)


def _whole_text(ids: NDArray[np.str_], where: str) -> NDArray[np.str_]:
    """The same ids; halves of characters, which no file can hold, are an error."""
    codes = np.ascontiguousarray(ids).view(np.uint32) if ids.size and ids.itemsize else np.empty(0, np.uint32)
    if ((codes >= 0xD800) & (codes <= 0xDFFF)).any():
        odd = next(name for name in ids.tolist() if not is_text(name))
        raise DataError(f"{_of(where)}the bag id {odd!r} has half a character (a lone surrogate); rename it")
    return ids


def _plain(i: int, value: Any, where: str) -> int | str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if value.endswith("\0"):
            raise DataError(f"{_of(where)}the bag id {value!r} ends in a zero character, which is lost; rename it")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        raise DataError(f"{_of(where)}bag {i} has no id; give every bag one")
    if isinstance(value, float) and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, bool | float | bytes | bytearray | list | dict | tuple | set):
        raise DataError(
            f"{_of(where)}the bag id {value!r} is a {type(value).__name__}, which cannot be kept exactly; "
            "use integers or text"
        )
    return str(value)


def _of(where: str) -> str:
    return f"{where}: " if where else ""
