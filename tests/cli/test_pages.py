"""The page from the command line: resolve --report, explain --out page.html, demo."""

from __future__ import annotations

import json

import numpy as np
from report_pages import Page

import mipl


def read(path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_resolve_writes_a_page_beside_the_table(run, animals, rows, tmp_path):
    told = run(
        "resolve", "train.csv", "-m", "PL-kNN", "-p", "n_neighbors=3", "--out", "labels.csv", "--report", "page.html"
    ).stderr
    page = read(tmp_path / "page.html")
    assert {row[0]: page.data["names"][row[3][0]] for row in page.data["rows"]} == {
        row["bag_id"]: row["label"] for row in rows("labels.csv")
    }
    assert "train.csv" in page.text
    assert "mipl resolve train.csv -m PL-kNN -p n_neighbors=3 --out labels.csv --report page.html" in page.text
    assert "n_neighbors=3" in page.text[page.text.index("parameters") :]
    assert "page written to page.html" in told


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_fitted(run, animals):
    told = run("resolve", "train.csv", "--report", "page.pdf", code=2).stderr
    assert told.startswith("mipl: cannot tell the format of page.pdf; its suffix must be one of .html")


def test_explain_writes_a_page_where_the_suffix_asks_for_one(run, animals, tmp_path):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl")
    told = run("explain", "m.mipl", "new.csv", "--out", "page.html")
    assert told.stdout == ""
    page = read(tmp_path / "page.html")
    assert {row[0]: page.data["names"][row[3][0]] for row in page.data["rows"]} == animals
    assert not page.data["candidates"]
    assert len(json.loads(run("explain", "m.mipl", "new.csv", "--out", "page.html", "--json").stdout)) == len(animals)
    assert (
        ".csv, .jsonl, .parquet, .xlsx, .html" in run("explain", "m.mipl", "new.csv", "--out", "p.txt", code=2).stderr
    )


def test_the_demo_writes_a_page_of_the_bags_in_its_table(run, rows, tmp_path):
    run("demo", "--method", "PL-kNN")
    page = read(tmp_path / "demo" / "report.html")
    found = rows("demo/resolved.csv")
    assert {row[0] for row in page.data["rows"]} == {row["bag_id"] for row in found}
    share = np.mean([row["label"] == row["truth"] for row in found])
    assert f"{100 * share:.1f}".removesuffix(".0") + " %" in page.text
    assert len(mipl.load("digits")) > len(found)


def test_a_page_of_several_files_says_so(run, animals, tmp_path):
    half = len(lines := (tmp_path / "train.csv").read_text().splitlines()) // 2 + 1
    (tmp_path / "one.csv").write_text("\n".join(lines[: half // 3 * 3 + 1]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([lines[0], *lines[half // 3 * 3 + 1 :]]) + "\n")
    run("resolve", "one.csv", "two.csv", "-m", "PL-kNN", "--report", "page.html")
    assert "one.csv and 1 more" in read(tmp_path / "page.html").text
