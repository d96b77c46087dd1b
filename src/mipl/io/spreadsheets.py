"""Cells that a spreadsheet would run: a text that begins with ``= + - @``, a tab or a line end is a formula to it.

Tables of answers put an apostrophe before such a cell, which is how a spreadsheet itself marks text, and before a text
that begins with an apostrophe already; so taking off one apostrophe gives every cell back. Numbers, and texts that read
as a number, are left as they are. Data set files are never changed: they are for programs, and come back exactly.
"""

from __future__ import annotations

import re

__all__ = ["escaped_cell", "is_formula", "unescaped_cell"]

#: Blanks count as nothing, since some programs cut them off; the full-width signs are formulas in East Asian locales.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula.

    >>> is_formula("=1+1"), is_formula("-cmd"), is_formula("-1.5"), is_formula("owl")
    (True, True, False, False)
    """
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def escaped_cell(text: str) -> str:
    """A text as a spreadsheet shows it and does not run it.

    >>> escaped_cell("=1+1"), escaped_cell("owl"), escaped_cell("'quoted")
    ("'=1+1", 'owl', "''quoted")
    """
    return f"'{text}" if text.startswith("'") or is_formula(text) else text


def unescaped_cell(text: str) -> str:
    """What `escaped_cell` was given, and any other cell with an apostrophe in front without it.

    >>> unescaped_cell("'=1+1"), unescaped_cell("owl")
    ('=1+1', 'owl')
    """
    return text.removeprefix("'")
