"""No cell of a table of answers is a formula, and every name comes back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mipl.io.tables import escaped_cell, is_formula, unescaped_cell, write_table

HOSTILE = ["=1+1", "+1-x", "-cmd", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "'quoted", "=cmd|' /C calc'!A0"]
HARMLESS = ["owl", "", "-1.5", "+3e-5", "1=1", "a-b", "é"]


@given(st.text())
@example("'")
@example("''=")
def test_an_escaped_cell_is_no_formula_and_comes_back(text):
    assert not is_formula(escaped_cell(text))
    assert unescaped_cell(escaped_cell(text)) == text


def test_only_what_could_be_run_is_touched():
    assert [escaped_cell(text) for text in HOSTILE] == [f"'{text}" for text in HOSTILE]
    assert [escaped_cell(text) for text in HARMLESS] == HARMLESS


@pytest.fixture
def columns() -> dict[str, list]:
    n = len(HOSTILE)
    return {"=id": HOSTILE, "x": [-0.5] * n, "k": [-3] * n, "set": [["=a", "b"]] * n, "none": [None] * n}


def test_csv_has_an_apostrophe_before_names_and_never_before_numbers(tmp_path: Path, columns):
    with write_table(columns, tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=id", "x", "k", "set", "none"]
    assert rows == [[f"'{name}", "-0.5", "-3", "'=a|b", ""] for name in HOSTILE]
    with write_table(columns, tmp_path / "raw.csv", raw=True).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert [row[0] for row in rows] == HOSTILE
    assert header[0] == "=id"


@pytest.mark.parametrize("raw", [False, True])
def test_excel_has_the_name_as_text_with_its_own_mark(tmp_path: Path, columns, raw):
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(write_table(columns, tmp_path / "x.xlsx", raw=raw)).active
    for name, (cell, number, *_) in zip(HOSTILE, sheet.iter_rows(min_row=2), strict=True):
        assert (cell.value, cell.data_type) == (name.replace("\r", "\n"), "s")  # XML has one kind of line end
        assert bool(cell.style_id and cell.quotePrefix) == (not raw and is_formula(name))
        assert (number.value, number.data_type, bool(number.quotePrefix)) == (-0.5, "n", False)


def test_json_lines_have_names_as_they_are(tmp_path: Path, columns):
    lines = write_table(columns, tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["=id"] for line in lines] == HOSTILE


def test_a_stream_spells_out_what_steers_a_terminal(capsys: pytest.CaptureFixture[str]):
    table = {"p(\x1b[1m)": [0.5], "label": ["\x9b31m"], "candidates": [["a\u202e", "b"]]}
    write_table(table, "-")
    assert capsys.readouterr().out == "p(\\x1b[1m),label,candidates\n0.5,\\x9b31m,a\\u202e|b\n"
    write_table(table, "-", raw=True)
    assert "\x1b[1m" in capsys.readouterr().out
