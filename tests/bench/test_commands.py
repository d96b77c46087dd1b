import re

import pytest
from bench_results import WORSE, made, suite
from typer.testing import CliRunner

from mipl.bench import Store
from mipl.bench.analysis import Results
from mipl.bench.output import render
from mipl.bench.output.tables import accuracy_table, cost_table, win_tie_loss_table
from mipl.bench.store import Outcome, read_records
from mipl.bench.store.csv_file import write_csv
from mipl.cli.bench import app
from mipl.errors import DataError


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
scores = ["accuracy"]
methods = [
    { method = "PL-kNN", label = "good & 100%_sure", params = { n_neighbors = 1 } },
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
    assert "worst" in mipl_bench("table", "made.toml", "--kind", "scores")
    assert "worst" in mipl_bench("table", "made.toml", "--method", "good & 100%_sure")
    assert "22 of 24 cells done" in mipl_bench("status", "made.toml")
    assert "wrote made-r.png" in mipl_bench("figure", "made.toml", "r")
    assert (tmp_path / "made-r.svg").is_file()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "discussion.md").write_text("We agree.")
    mipl_bench("report", "made.toml")
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "We agree." in page
    assert "Finished splits per figure: good & 100%_sure 4, PL-kNN (Mean) 4, PL-kNN (MaxMin) 3." in page
    assert "Run on at most 2 processors (made up)" in page
    for picture in re.findall(r"\]\((.+?\.svg)\)", page):
        assert (tmp_path / "docs" / picture).is_file()
    store = tmp_path / "results" / "results.csv"
    mipl_bench("report", "made.toml")
    assert (tmp_path / "docs" / "results.md").read_text() == page
    export, store = store, tmp_path / "imported.sqlite"
    mipl_bench("import", str(export))
    mipl_bench("report", "made.toml")
    assert "Run on at most 2 processors (made up)" in (tmp_path / "docs" / "results.md").read_text()
    store = export
    (tmp_path / "made.toml").write_text(re.sub('title = ".*"', r'title = "<b>\\u001b[2J"', TOML))
    mipl_bench("report", "made.toml")
    assert "## &lt;b>\\x1b[2J" in (tmp_path / "docs" / "results.md").read_text()
    (tmp_path / "results" / "environment.json").write_text("[{}]")
    with pytest.raises(DataError, match=r"environment\.json is damaged or not a list of the machines"):
        mipl_bench("report", "made.toml")
