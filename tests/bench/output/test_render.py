import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from bench_results import made

from mipl.bench.output import render
from mipl.bench.output.table import Entry, Row, Table
from mipl.bench.output.tables import accuracy_table, cost_table, tidy_table, win_tie_loss_table


def test_aligned_text_lines_up():
    lines = render(accuracy_table(made()), "text").splitlines()
    body = [line for line in lines if re.search(r"\d±\d", line)]
    assert len({line.index("±") for line in body}) == 1


def test_markdown_has_the_same_number_of_cells_in_every_row():
    lines = [line for line in render(accuracy_table(made()), "markdown").splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert "**0.800±0.000**" in "\n".join(lines)


def test_csv_holds_full_figures_for_programs():
    rows = list(csv.DictReader(io.StringIO(render(tidy_table(made()), "csv"))))
    assert len(rows) == 6
    worse = next(row for row in rows if row["group"] == "MaxMin" and row["r"] == "1")
    assert (worse["n"], float(worse["mean"]), worse["verdict"]) == ("4", 0.685, "win")
    assert float(worse["p"]) < 0.001


@pytest.mark.parametrize("table", [accuracy_table, win_tie_loss_table, cost_table])
def test_latex_is_balanced_and_escaped(table):
    text = render(table(made()), "latex")
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"good \& 100\%\_sure" in text or table is win_tie_loss_table
    columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}
    assert text.isascii()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_compiles(tmp_path):
    tables = "\n".join(render(table(made()), "latex") for table in (accuracy_table, win_tie_loss_table, cost_table))
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}" + tables + r"\end{document}"
    (tmp_path / "t.tex").write_text(document)
    call = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert call.returncode == 0, call.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000


@pytest.mark.parametrize(("rules", "drawn"), [((False, False, True), True), ((True, True, True), False)])
def test_a_line_of_text_sets_a_total_apart_and_nothing_else(rules, drawn):
    table = Table("t", ["name", "score"], [Row([Entry("a"), Entry(1)], rule=rule) for rule in rules])
    before_last = render(table, "text").rstrip().splitlines()[-2]
    assert (set(before_last) == {"-"}) == drawn


def test_names_of_methods_act_on_no_terminal_page_or_spreadsheet():
    names = ["=1+1", "\x1b[2J", "<script>", "two\nlines", r"\input{x}"]
    table = Table("t\x1b<b>", ["method", "@x"], [Row([Entry(name), Entry(-0.5)]) for name in names])
    table = replace(table, legend="• \x9b2J<i>", notes=["not run: two\nlines <u>\x07"])
    rows = list(csv.reader(io.StringIO(render(table, "csv"))))
    assert rows[0] == ["method", "'@x"]
    assert rows[1] == ["'=1+1", "-0.500"]
    for form in ("text", "markdown", "latex", "csv"):
        shown = render(table, form)
        assert not {"\x1b", "\x9b", "\x07"} & set(shown)
        assert "two\nlines" not in shown
    assert "<" not in render(table, "markdown")
    assert r"\input" not in render(table, "latex")
