"""What commands print, in one place: tables that line up, JSON for machines, remarks and a spinner for people.

Everything that reaches the terminal passes through here and is made of plain text, see `mipl.visible_text`: names in a
file cannot steer the terminal, and square brackets are no markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from mipl.visible_text import visible

__all__ = [
    "SUMMARY_COLUMNS",
    "JsonOption",
    "QuietOption",
    "print_json",
    "print_lines",
    "print_problem",
    "print_table",
    "say",
    "say_error",
    "working",
]

#: Headings for the values of `MIPLDataset.summary`.
SUMMARY_COLUMNS = ("name", "bags", "instances", "max", "min", "dims", "classes", "candidates", "positive %")

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only: no progress, no remarks.")]


def print_json(value: Any) -> None:
    """Print one JSON document on standard output; it is ASCII, so nothing in it acts on a terminal."""
    print(json.dumps(value, indent=2), flush=True)


def print_lines(*lines: str) -> None:
    """Print lines of a result on standard output."""
    for line in lines:
        print(visible(line), flush=True)


def print_problem(severity: str, text: str) -> None:
    """Print a problem as one line of a result; its severity has a colour on a terminal."""
    colour = {"error": "red", "warning": "yellow"}.get(severity)
    shown = typer.style(severity, fg=colour, bold=colour is not None) if sys.stdout.isatty() else severity
    print(f"{shown}: {visible(text)}", flush=True)


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
        words = max(map(len, visible(name).split()), default=0)  # a heading breaks between words, not within
        place: Any = "right" if numeric else "left"
        table.add_column(Text(visible(name)), justify=place, overflow="fold", min_width=words)
    for row in rows:
        table.add_row(*(Text(visible(_cell(value))) for value in row))
    # Not a terminal: no wrapping at 80 columns, so that a pipe sees whole lines.
    console = Console(width=None if sys.stdout.isatty() else 240)
    if title:
        console.print(Text(visible(title), style="bold"))
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
    """Print a remark of one line on standard error, so that standard output stays clean for results."""
    if not quiet:
        print(visible(text), file=sys.stderr, flush=True)


def say_error(text: str) -> None:
    """Print an error on standard error; some, such as what to do without a network, take several lines."""
    print(visible(text, keep="\n"), file=sys.stderr, flush=True)


@contextmanager
def working(text: str, quiet: bool = False) -> Iterator[None]:
    """Show a spinner while something runs; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(text))):
        yield
