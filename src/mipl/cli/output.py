"""What commands share: tables that line up, JSON for machines, a spinner for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = [
    "SUMMARY_COLUMNS",
    "JsonOption",
    "QuietOption",
    "print_json",
    "print_table",
    "say",
    "working",
]

#: Headings for the values of `MIPLDataset.summary`.
SUMMARY_COLUMNS = ("name", "bags", "instances", "max", "min", "dims", "classes", "candidates", "positive %")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; numbers stand to the right, unknown values as a dash."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for j, name in enumerate(header):
        numeric = any(isinstance(row[j], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    # Not a terminal: no wrapping at 80 columns, so that a pipe sees whole lines.
    console = Console(width=None if sys.stdout.isatty() else 240)
    if title:
        console.print(Text(title, style="bold"))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return "|".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def say(text: str, quiet: bool = False) -> None:
    """Print a remark on standard error, so that standard output stays clean for results."""
    if not quiet:
        typer.echo(text, err=True)


@contextmanager
def working(text: str, quiet: bool = False) -> Iterator[None]:
    """Show a spinner while something runs; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
