"""The package behind Excel workbooks, which is an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mipl.errors import UnavailableError

__all__ = ["openpyxl"]


def openpyxl() -> Any:
    """The package that reads and writes workbooks, or an error that says how to get it."""
    try:
        return import_module("openpyxl")
    except ImportError as error:
        raise UnavailableError("Excel files need openpyxl: pip install 'mipl[excel]'; or use .csv") from error
