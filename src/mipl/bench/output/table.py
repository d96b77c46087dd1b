"""A table as data: numbers stay numbers until `mipl.bench.output.render` writes them down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Entry", "Row", "Table"]


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Parameters
    ----------
    value : str, int, float, tuple of int, or None
        A text, a number, counts that are written with strokes between them, or None for no result (a dash).
    std : float or None, default=None
        Standard deviation, written after ±; NaN for one split is not written.
    form : str, default=".3f"
        Format of a float and of its standard deviation.
    count : int or None, default=None
        Number of splits behind the figure, where they are fewer than asked for.
    bold : bool, default=False
        Whether it is the best of its column.
    marker : {"", "win", "loss", "untested", "unconfirmed"}, default=""
        The reference's verdict over it, or that a published figure is unconfirmed.
    """

    value: str | float | tuple[int, ...] | None
    std: float | None = None
    form: str = ".3f"
    count: int | None = None
    bold: bool = False
    marker: Literal["", "win", "loss", "untested", "unconfirmed"] = ""

    @property
    def has_std(self) -> bool:
        """Whether a standard deviation is written."""
        return self.std is not None and not math.isnan(self.std)


@dataclass(frozen=True)
class Row:
    """A row, or with a single entry a heading over all columns; `rule` draws a line above it."""

    entries: list[Entry]
    rule: bool = False

    @property
    def is_heading(self) -> bool:
        """Whether the row is a heading over all columns."""
        return len(self.entries) == 1


@dataclass(frozen=True)
class Table:
    """A table.

    Parameters
    ----------
    caption : str
        What it shows.
    header : list of str
        Names of the columns.
    rows : list of Row
        The body.
    names : int, default=1
        How many columns at the left name the row.
    legend : str, default=""
        What markers or columns mean.
    best : str, default=""
        What bold print is the best of, as "mean"; "" where nothing is bold.
    notes : list of str, default=[]
        What a reader has to know.
    """

    caption: str
    header: list[str]
    rows: list[Row]
    names: int = 1
    legend: str = ""
    best: str = ""
    notes: list[str] = field(default_factory=list)
