"""``NAME=VALUE`` words of a command line."""

from __future__ import annotations

import ast
from typing import Any

from mipl.errors import ParameterError

__all__ = ["parse_assignments"]


def parse_assignments(texts: list[str] | None) -> dict[str, Any]:
    """Read assignments; a value is a Python literal, or else the text itself.

    >>> parse_assignments(["k=5", "embed=maxmin"])
    {'k': 5, 'embed': 'maxmin'}
    """
    parsed = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ParameterError(f"cannot read the parameter {text!r}; write NAME=VALUE, for example k=5")
        try:
            parsed[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parsed[name] = value
    return parsed
