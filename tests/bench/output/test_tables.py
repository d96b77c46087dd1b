import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from mipl.bench.accuracy_figures import draw_against_time
from mipl.bench.cell import Outcome
from mipl.bench.figures import KINDS, draw
from mipl.bench.published import published
from mipl.bench.render import render
from mipl.bench.results import Results, read_records, write_csv
from mipl.bench.status import status
from mipl.bench.suite_entries import MethodEntry
from mipl.bench.tables import Entry, Row, Table, accuracy_table, cost_table, tidy_table, win_tie_loss_table
from typer.testing import CliRunner

from mipl.bench.store import Record, Store
from mipl.bench.suite import Suite
from mipl.cli.bench import app
from mipl.errors import DataError

BEST, SAME, WORSE = "good & 100%_sure", "PL-kNN (Mean)", "PL-kNN (MaxMin)"


def suite(**changes):
    methods = [
        {"method": "PL-kNN", "label": "good & 100%_sure", "params": {"k": 1}},
        {"method": "PL-kNN", "group": "Mean", "params": {"embed": "mean"}},
        {"method": "PL-kNN", "group": "MaxMin", "params": {"embed": "maxmin"}},
    ]
    return Suite(**{"methods": methods, "datasets": ["digits"], "r": [1, 2], "splits": 4, "name": "made", **changes})


def record(cell, accuracy, **outcome):
    values = {"fit_seconds": 2.0, "predict_seconds": 0.5, "peak_mib": 100.0, "threads": 1} | outcome
    state = "failed" if outcome.get("error") else "done"
    return Record(cell, state, 1, 0.0, 1.0, Outcome(accuracy=accuracy, **values))


def made(lacks=lambda place: False, **changes):
    """Results in which BEST is better than WORSE by 0.1 to 0.13, and equal to SAME."""
    chosen = suite(**changes)
    level = {BEST: 0.8, SAME: 0.8, WORSE: 0.7}
    records = [
        record(
            cell, level[place.method] - (0.01 * place.split if place.method == WORSE else 0.0) - 0.1 * (place.r == 2)
        )
        for place, cell in chosen.cells().items()
        if not lacks(place)
    ]
    return Results(chosen, records)


def entries(results, method, r):
    table = accuracy_table(results)
    row = {BEST: 0, SAME: 3, WORSE: 6}[method] + r - 1
    return table.rows[row].entries


# -------------------------------------------------------------------- what tables say


def test_markers_and_bold_follow_the_tests_and_the_means():
    results = made()
    best, same, worse = (entries(results, method, 1)[-1] for method in (BEST, SAME, WORSE))
    assert (best.text, best.bold, best.marker) == ("0.800±0.000", True, "")
    assert (same.text, same.bold, same.marker) == ("0.800±0.000", True, "")
    assert (worse.text, worse.bold, worse.marker) == ("0.685±0.013", False, "win")
    swapped = made(reference=WORSE)
    assert entries(swapped, BEST, 2)[-1].marker == "loss"


def test_missing_and_unequal_splits_are_handled_and_said():
    results = made(
        lambda place: (
            (place.method == WORSE and place.r == 1 and place.split > 0)
            or (place.method == WORSE and place.r == 2)
            or (place.method == SAME and place.split == 3)
        )
    )
    assert entries(results, WORSE, 1)[-1].text == "0.700 (1)?"
    assert entries(results, WORSE, 2)[-1].text == "–"
    assert entries(results, SAME, 1)[-1].text == "0.800±0.000 (3)"
    text = render(accuracy_table(results), "text")
    for note in (
        "fewer than 4",
        "fewer than two splits in common",
        "no finished split",
        "9 of 24 cells have not been run",
    ):
        assert note in text
    counts = win_tie_loss_table(results)
    assert counts.rows[-1].entries[-1].text == "0/2/0"
    assert "1 comparisons have fewer than two splits in common" in counts.notes[0]


def test_win_tie_loss_counts_are_by_r_and_in_total_with_groups_joined():
    table = win_tie_loss_table(made())
    assert table.header == ["Against", "r=1", "r=2", "In total"]
    assert [[e.text for e in row.entries] for row in table.rows] == [
        ["PL-kNN", "1/1/0", "1/1/0", "2/2/0"],
        ["In total", "1/1/0", "1/1/0", "2/2/0"],
    ]


def test_a_failed_cell_is_no_result_and_is_said():
    chosen = suite(splits=1, r=[1])
    records = [record(cell, None, error="ValueError: no") for cell in chosen.cells().values()]
    results = Results(chosen, records)
    assert not results.summaries
    assert "3 of 3 cells failed" in render(accuracy_table(results), "text")
    assert "ValueError: no" in status(results)


def test_the_newest_code_counts_and_a_mixture_is_said():
    chosen = suite(splits=2, r=[1])
    cells = list(chosen.cells().items())
    old = [
        Record(type(c)(**{**vars_of(c), "code": "old"}), "done", 1, 0.0, 1.0, Outcome(accuracy=0.1)) for _, c in cells
    ]
    new = [Record(c, "done", 1, 0.0, 2.0, Outcome(accuracy=0.9)) for place, c in cells if place.split == 0]
    results = Results(chosen, [*new, *old])
    assert {place.split: r.outcome.accuracy for place, r in results.done.items()} == {0: 0.9, 1: 0.1}
    assert any("more than one version of the code" in note for note in results.notes())
    assert "3 results were made by another version of the code" in status(results)


def vars_of(cell):
    return {name: value for name, value in vars(cell).items() if name != "key"}


def test_published_figures_stand_below_ours_where_the_protocol_is_the_same(monkeypatch):
    monkeypatch.setitem(published(0.5), ("PL-kNN", "Mean", "digits", 1), published(0.5)["PL-kNN", "Mean", "mnist", 1])
    rows = [[e.text for e in row.entries] for row in accuracy_table(made(), with_published=True).rows]
    at = rows.index(["PL-kNN", "1", "0.800±0.000"])
    assert rows[at + 1] == ["  published", "1", "0.397±0.021"]
    assert len(accuracy_table(made()).rows) == len(rows) - 1


def test_unconfirmed_figures_are_marked_and_absent_methods_have_their_published_rows():
    absent = [MethodEntry("FastMIPL", label="FastMIPL")]
    chosen = Suite(
        methods=[{"method": "PL-kNN", "label": "MIPLGP"}], datasets=["mnist", "sival"], train_size=0.7, absent=absent
    )
    text = render(accuracy_table(Results(chosen, []), with_published=True), "text")
    assert re.search(r"published +0\.949† +0\.669\n", text)
    assert re.search(r"Published only\n-+\nFastMIPL +0\.999 +0\.779\n", text)
    assert "†: as recalled, unconfirmed." in text


# -------------------------------------------------------------------- how they are written


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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "prior"])
def test_figures_are_drawn_as_png_and_svg_and_the_same_results_give_the_same_svg(tmp_path, kind):
    files = [tmp_path / "a.png", tmp_path / "a.svg"]
    assert draw(made(), kind, files) == files
    assert files[0].read_bytes().startswith(b"\x89PNG")
    svg = files[1].read_text()
    assert "good &amp; 100%_sure" in svg
    draw(made(), kind, [tmp_path / "b.svg"])
    assert (tmp_path / "b.svg").read_text() == svg


def test_accuracy_against_time_compares_methods_at_the_same_r():
    whole = draw_against_time(made()).axes[0]
    part = draw_against_time(made(lambda place: place.method == WORSE and place.r == 2)).axes[0]
    assert (whole.get_title(), part.get_title()) == ("digits", "digits, r = 1")
    heights = [[line.get_ydata()[0] for line in axes.lines] for axes in (whole, part)]
    assert heights[0] == pytest.approx([0.75, 0.75, 0.635])
    assert heights[1] == pytest.approx([0.8, 0.8, 0.685])


def test_the_prior_figure_has_a_line_for_each_alpha_eps(tmp_path):
    methods = [{"method": "PL-kNN", "label": str(a), "params": {"alpha_eps": a}} for a in (1e-4, 1e-3, 1e-2)]
    chosen = Suite(methods=methods, datasets=["digits"], r=[1, 2, 3], splits=2)
    rng = np.random.default_rng(0)
    draw(Results(chosen, [record(c, rng.random()) for c in chosen.cells().values()]), "prior", [tmp_path / "p.svg"])
    svg = (tmp_path / "p.svg").read_text()
    assert svg.count('id="line2d_') > 0
    with pytest.raises(DataError, match="no method of the suite sets alpha_eps"):
        draw(made(), "prior", [tmp_path / "p.svg"])


def test_ranks_need_methods_with_the_same_problems(tmp_path):
    with pytest.raises(DataError, match="at least 3 methods"):
        draw(made(lambda place: place.method == WORSE), "ranks", [tmp_path / "r.svg"])


# -------------------------------------------------------------------- stores, exports, commands


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as opened:
        opened.begin_run({"processors": 2, "platform": "made up", "numpy": "2"})
        with opened.transaction():
            for place, r in made().done.items():
                opened.claim(r.cell)
                error = "ValueError: two\nlines" if (place.method, place.split) == (WORSE, 3) else ""
                opened.finish(r.cell, Outcome(error=error) if error else r.outcome)
    return path


def test_a_csv_export_gives_the_same_tables_as_the_store(tmp_path, store):
    exported = write_csv(read_records(store), tmp_path / "results.csv")
    for table in (accuracy_table, win_tie_loss_table, cost_table):
        a, b = (render(table(Results.read(suite(), path)), "text") for path in (store, exported))
        assert a == b
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no export of results"):
        read_records(tmp_path / "other.csv")


TOML = """
name = "made"
title = "A made-up suite"
datasets = ["digits"]
r = [1, 2]
splits = 4
methods = [
    { method = "PL-kNN", label = "good & 100%_sure", params = { k = 1 } },
    { method = "PL-kNN", group = "Mean", params = { embed = "mean" } },
    { method = "PL-kNN", group = "MaxMin", params = { embed = "maxmin" } },
]
"""


def test_the_commands_print_tables_figures_status_and_a_report(tmp_path, store, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.toml").write_text(TOML)

    def mipl_bench(*arguments):
        result = CliRunner().invoke(app, [*arguments, "--store", str(store)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    assert "0.800±0.000" in mipl_bench("table", "made.toml")
    assert mipl_bench("table", "made.toml", "--format", "latex", "--r", "2").startswith(r"\begin{table}")
    assert "2/2/0" in mipl_bench("table", "made.toml", "--kind", "wins")
    assert "22 of 24 cells done" in mipl_bench("status", "made.toml")
    assert "wrote made-r.png" in mipl_bench("figure", "made.toml", "r")
    assert (tmp_path / "made-r.svg").is_file()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "discussion.md").write_text("We agree.")
    mipl_bench("report", "made.toml")
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "We agree." in page
    assert "Finished splits a figure: good & 100%_sure 4, PL-kNN (Mean) 4, PL-kNN (MaxMin) 3." in page
    assert "Run on at most 2 processors (made up)" in page
    for picture in re.findall(r"\]\((.+?\.svg)\)", page):
        assert (tmp_path / "docs" / picture).is_file()
    store = tmp_path / "results" / "results.csv"
    mipl_bench("report", "made.toml")
    assert (tmp_path / "docs" / "results.md").read_text() == page


@pytest.mark.parametrize(("rules", "drawn"), [((False, False, True), True), ((True, True, True), False)])
def test_a_line_of_text_sets_a_total_apart_and_nothing_else(rules, drawn):
    table = Table("t", ["name", "score"], [Row([Entry("a"), Entry("1")], rule=rule) for rule in rules])
    before_last = render(table, "text").rstrip().splitlines()[-2]
    assert (set(before_last) == {"-"}) == drawn
