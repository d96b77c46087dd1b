"""Write a table as Markdown, LaTeX, CSV or aligned text."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from mipl.bench.tables import Entry, Row, Table
from mipl.errors import DataError

__all__ = ["FORMATS", "render"]

_MARKERS = {"": "", "win": "•", "loss": "◦", "unconfirmed": "†"}
_LATEX_MARKERS = {"": "", "win": r"$\bullet$", "loss": r"$\circ$", "unconfirmed": r"$\dagger$"}
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--", "•": r"$\bullet$",
    "◦": r"$\circ$", "†": r"$\dagger$", "α": r"$\alpha$", "ε": r"$\epsilon$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def render(table: Table, form: str) -> str:
    """Write a table in one of `FORMATS`."""
    if form not in FORMATS:
        raise DataError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")
    return FORMATS[form](table)


def _markdown(table: Table) -> str:
    def cell(entry: Entry) -> str:
        text = entry.text.strip().replace("|", r"\|")
        return (f"**{text}**" if entry.bold and text else text) + _MARKERS[entry.marker]

    width = len(table.header)
    lines = ["| " + " | ".join(table.header) + " |"]
    lines.append("|" + "|".join("---" if i < table.names else ":---:" for i in range(width)) + "|")
    for row in table.rows:
        cells = (
            [f"*{row.entries[0].text}*", *[""] * (width - 1)] if _is_heading(row) else [cell(e) for e in row.entries]
        )
        lines.append("| " + " | ".join(cells) + " |")
    notes = [f"{note}  " for note in table.notes]
    return "\n".join([table.caption, "", *lines, "", *notes]).rstrip() + "\n"


def _latex(table: Table) -> str:
    """Write a table environment; the document needs the package booktabs."""

    def cell(entry: Entry) -> str:
        text = _escape(entry.text.strip())
        return (rf"\textbf{{{text}}}" if entry.bold else text) + _LATEX_MARKERS[entry.marker]

    width = len(table.header)
    lines = [
        r"\begin{table}",
        r"\centering\scriptsize",
        rf"\caption{{{_escape(' '.join([table.caption, *table.notes]))}}}",
        rf"\begin{{tabular}}{{{'l' * table.names}{'c' * (width - table.names)}}}",
        r"\toprule",
        " & ".join(_escape(name) for name in table.header) + r" \\",
        r"\midrule",
    ]
    for i, row in enumerate(table.rows):
        if row.rule and i > 0 and not _is_heading(table.rows[i - 1]):
            lines.append(r"\midrule")
        if _is_heading(row):
            lines += [rf"\multicolumn{{{width}}}{{c}}{{{_escape(row.entries[0].text)}}} \\", r"\midrule"]
        else:
            lines.append(" & ".join(cell(e) for e in row.entries) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _text(table: Table) -> str:
    width = len(table.header)
    full = [row.entries for row in table.rows if not _is_heading(row)]
    # Accuracies stand one under the other from the left, with room for the star of the best; counts from the right.
    left = [i < table.names or any("±" in entries[i].text for entries in full) for i in range(width)]

    def cell(i: int, entry: Entry) -> str:
        star = ("*" if entry.bold else " ") if left[i] and i >= table.names else ""
        return star + entry.text + _MARKERS[entry.marker]

    body = [[cell(i, e) for i, e in enumerate(row.entries)] for row in table.rows]
    rows = [cells for cells in [table.header, *body] if len(cells) == width]
    widths = [max(len(cells[i]) for cells in rows) for i in range(width)]

    def line(cells: list[str]) -> str:
        parts = zip(cells, widths, left, strict=True)
        return "  ".join(c.ljust(w) if at_left else c.rjust(w) for c, w, at_left in parts).rstrip()

    rule = "-" * (sum(widths) + 2 * (width - 1))
    lines = [table.caption, "", line(table.header), rule]
    for i, (row, cells) in enumerate(zip(table.rows, body, strict=True)):
        if _is_heading(row):
            lines += [*([rule] if i > 0 else []), row.entries[0].text.center(len(rule)).rstrip(), rule]
            continue
        # A line above the last row sets a total apart; where every row has one, none is a total.
        if row.rule and 0 < i == len(table.rows) - 1 and not table.rows[i - 1].rule:
            lines.append(rule)
        lines.append(line(cells))
    notes = [note.replace("The best mean is in bold", "*: the best mean") for note in table.notes]
    return "\n".join([*lines, "", *notes]).rstrip() + "\n"


def _csv(table: Table) -> str:
    """Write a table for programs: names in every row, markers and bold print left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.header)
    for row in table.rows:
        if not _is_heading(row):
            writer.writerow([e.text.strip() for e in row.entries])
    return out.getvalue()


def _is_heading(row: Row) -> bool:
    return len(row.entries) == 1


def _escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


FORMATS: dict[str, Callable[[Table], str]] = {
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "text": _text,
}
