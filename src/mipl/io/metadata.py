"""What mipl writes beside the rows of a file, read back: JSON whose every value is checked before it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mipl.errors import DataError
from mipl.visible_text import is_text

__all__ = ["check_metadata", "read_metadata"]

_LARGEST = 2**63


def read_metadata(text: str | bytes, where: str) -> dict[str, Any]:
    """Read the metadata of a file.

    Parameters
    ----------
    text : str or bytes
        A JSON object. Keys that are not known are left alone: a later version may write more of them.
    where : str
        What errors call the file.

    Raises
    ------
    DataError
        It is no such text, a value is not of its kind, or the file is of a newer format.
    """
    try:
        extra = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: the metadata of mipl are not JSON ({error})") from error
    return check_metadata(extra, where)


def check_metadata(extra: Any, where: str) -> dict[str, Any]:
    """The metadata of a file after JSON was read; a value that is not of its kind is an error that names its key."""
    if not isinstance(extra, dict):
        raise DataError(f"{where}: the metadata of mipl are a {type(extra).__name__}, not a JSON object")
    for key, value in extra.items():
        what, fits = _KEYS.get(key, ("", _anything))
        if not fits(value):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            raise DataError(f"{where}: the metadata of mipl say {key!r}: {ascii(shown)[1:-1]}; it must be {what}")
    if extra.get("format", 1) > 1:
        raise DataError(f"{where} was written by a newer mipl (format {extra['format']}); upgrade mipl")
    return extra


def _anything(value: Any) -> bool:
    return True


def _whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST <= value < _LARGEST


def _text(value: Any) -> bool:
    """A text that can be written: JSON may hold halves of characters."""
    return isinstance(value, str) and is_text(value)


def _names(value: Any) -> bool:
    """Different labels, all integers or all text; NumPy would drop zero characters at the end of one."""
    if not isinstance(value, list) or not value:
        return False
    if all(map(_whole, value)):
        return len(set(value)) == len(value)
    return all(_text(name) and not name.endswith("\0") for name in value) and len(set(value)) == len(value)


def _shape(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= 8 and all(_whole(side) and side >= 1 for side in value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _or_null(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _one_of(*words: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str | bool) and value in words


_LABEL = ("an integer, a text or null", lambda value: value is None or _whole(value) or _text(value))
#: key -> what it must be, in words and as a test
_KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "format": ("an integer from 1", lambda value: _whole(value) and value >= 1),
    "classes": ("a list of different labels, all integers or all text", _or_null(_names)),
    "background": _LABEL,
    "instance_shape": ("a list of one to eight positive integers", _or_null(_shape)),
    "feature_names": ("a list of texts", lambda value: value in (None, "given") or _texts(value)),
    "features": ('"all"', _one_of("all")),
    "weights": ("true or false", lambda value: isinstance(value, bool)),
    "bag_id": ('"string"', _one_of("string")),
    "bag_ids": ("a list of different ids, all integers or all text", _or_null(_names)),
    "groups": ("a list of integers", _or_null(lambda value: isinstance(value, list) and all(map(_whole, value)))),
    "name": ("a text", _or_null(_text)),
    "description": ("a text", _text),
}
