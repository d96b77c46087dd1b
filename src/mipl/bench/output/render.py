"""Write a table as Markdown, LaTeX, CSV or aligned text."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace

from mipl.bench.output.table import Entry, Table
from mipl.errors import ParameterError
from mipl.io.tables import escaped_cell
from mipl.visible_text import visible

__all__ = ["FORMATS", "plain_markdown", "render"]

#: A verdict that could not be reached belongs to the figure, so it stands inside the bold print.
_MARKERS = {"": "", "win": "•", "loss": "◦", "untested": "", "unconfirmed": "†"}
_LATEX_MARKERS = {"": "", "win": r"$\bullet$", "loss": r"$\circ$", "untested": "", "unconfirmed": r"$\dagger$"}
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--", "•": r"$\bullet$",
    "◦": r"$\circ$", "†": r"$\dagger$", "α": r"$\alpha$", "ε": r"$\epsilon$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def render(table: Table, form: str) -> str:
    """Write a table in one of `FORMATS`."""
    if form not in FORMATS:
        raise ParameterError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")
    shown = replace(
        table,
        caption=visible(table.caption),
        header=[visible(name) for name in table.header],
        legend=visible(table.legend),
        notes=[visible(note) for note in table.notes],
    )
    return FORMATS[form](shown)


def _written(entry: Entry) -> str:
    """The figure or text of an entry, without its marker."""
    value = entry.value
    if value is None:
        return "–"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        return "/".join(map(str, value))
    text = str(value) if isinstance(value, int) else f"{value:{entry.form}}"
    if entry.has_std:
        text += f"±{entry.std:{entry.form}}"
    if entry.count is not None:
        text += f" ({entry.count})"
    return text + ("?" if entry.marker == "untested" else "")


def _remarks(table: Table, bold: str) -> list[str]:
    """The lines below a table; `bold` says how the best is marked."""
    first = " ".join(part for part in (table.legend, bold if table.best else "") if part)
    return [*([first] if first else []), *table.notes]


def _markdown(table: Table) -> str:
    def cell(entry: Entry) -> str:
        text = _escaped_for_markdown(_written(entry).strip())
        return (f"**{text}**" if entry.bold and text else text) + _MARKERS[entry.marker]

    width = len(table.header)
    lines = ["| " + " | ".join(map(_escaped_for_markdown, table.header)) + " |"]
    lines.append("|" + "|".join("---" if i < table.names else ":---:" for i in range(width)) + "|")
    for row in table.rows:
        cells = (
            [f"*{_escaped_for_markdown(_written(row.entries[0]))}*", *[""] * (width - 1)]
            if row.is_heading
            else [cell(e) for e in row.entries]
        )
        lines.append("| " + " | ".join(cells) + " |")
    notes = [f"{plain_markdown(note)}  " for note in _remarks(table, f"The best {table.best} is in bold.")]
    return "\n".join([plain_markdown(table.caption), "", *lines, "", *notes]).rstrip() + "\n"


def _latex(table: Table) -> str:
    """Write a table environment; the document needs the package booktabs."""

    def cell(entry: Entry) -> str:
        text = _escaped_for_latex(_written(entry).strip())
        return (rf"\textbf{{{text}}}" if entry.bold else text) + _LATEX_MARKERS[entry.marker]

    width = len(table.header)
    remarks = _remarks(table, f"The best {table.best} is in bold.")
    lines = [
        r"\begin{table}",
        r"\centering\scriptsize",
        rf"\caption{{{_escaped_for_latex(' '.join([table.caption, *remarks]))}}}",
        rf"\begin{{tabular}}{{{'l' * table.names}{'c' * (width - table.names)}}}",
        r"\toprule",
        " & ".join(_escaped_for_latex(name) for name in table.header) + r" \\",
        r"\midrule",
    ]
    for i, row in enumerate(table.rows):
        if row.rule and i > 0 and not table.rows[i - 1].is_heading:
            lines.append(r"\midrule")
        if row.is_heading:
            heading = _escaped_for_latex(_written(row.entries[0]))
            lines += [rf"\multicolumn{{{width}}}{{c}}{{{heading}}} \\", r"\midrule"]
        else:
            lines.append(" & ".join(cell(e) for e in row.entries) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _text(table: Table) -> str:
    width = len(table.header)
    full = [row.entries for row in table.rows if not row.is_heading]
    # Accuracies stand one under the other from the left, with room for the star of the best; counts from the right.
    left = [i < table.names or any(entries[i].std is not None for entries in full) for i in range(width)]

    def cell(i: int, entry: Entry) -> str:
        star = ("*" if entry.bold else " ") if left[i] and i >= table.names else ""
        return star + _written(entry) + _MARKERS[entry.marker]

    body = [[cell(i, e) for i, e in enumerate(row.entries)] for row in table.rows]
    rows = [cells for cells in [table.header, *body] if len(cells) == width]
    widths = [max(len(cells[i]) for cells in rows) for i in range(width)]

    def line(cells: list[str]) -> str:
        parts = zip(cells, widths, left, strict=True)
        return "  ".join(c.ljust(w) if at_left else c.rjust(w) for c, w, at_left in parts).rstrip()

    rule = "-" * (sum(widths) + 2 * (width - 1))
    lines = [table.caption, "", line(table.header), rule]
    for i, (row, cells) in enumerate(zip(table.rows, body, strict=True)):
        if row.is_heading:
            lines += [*([rule] if i > 0 else []), cells[0].center(len(rule)).rstrip(), rule]
            continue
        # A line above the last row of a part sets a total apart; where every row has one, none is a total.
        is_last = i + 1 == len(table.rows) or table.rows[i + 1].is_heading
        if row.rule and i > 0 and is_last and not table.rows[i - 1].rule:
            lines.append(rule)
        lines.append(line(cells))
    return "\n".join([*lines, "", *_remarks(table, f"*: the best {table.best}.")]).rstrip() + "\n"


def _csv(table: Table) -> str:
    """Write a table for programs: names in every row, markers and bold print left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(escaped_cell, table.header))
    for row in table.rows:
        if not row.is_heading:
            cells = ["" if e.value is None else _written(e).strip() for e in row.entries]
            names = (isinstance(e.value, str) for e in row.entries)
            writer.writerow([escaped_cell(c) if is_name else c for c, is_name in zip(cells, names, strict=True)])
    return out.getvalue()


def plain_markdown(line: str) -> str:
    """A line of Markdown in which names are no tags of HTML and steer no terminal."""
    return visible(line).replace("<", "&lt;")


def _escaped_for_markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", "&lt;")


def _escaped_for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


FORMATS: dict[str, Callable[[Table], str]] = {
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "text": _text,
}
