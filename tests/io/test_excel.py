"""Workbooks: read as people make them, written so that names stay names, refused clearly without openpyxl."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import mipl
from mipl.errors import DataError, UnavailableError
from mipl.io.tables import write_table


def test_a_sheet_with_numbers_as_names_and_empty_rows_is_read(tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    book = openpyxl.Workbook()
    for row in (
        [],
        ["bag_id", "candidates", "width", None],
        [1, "7|8", 1.5],
        [1, None, 2],
        [2, 7, 3, None],
        [None] * 4,
    ):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    ds = mipl.load(tmp_path / "x.xlsx")
    assert ds.bag_ids.tolist() == [1, 2]
    assert ds.candidate_sets() == [[7, 8], [7]]
    assert ds.bags.instances.tolist() == [[1.5], [2], [3]]
    book.active["C4"] = None
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(DataError, match="line 4, bag 1, instance 1, column 'width': the value is missing"):
        mipl.load(tmp_path / "x.xlsx")


def test_answers_are_text_and_numbers_and_never_formulas(tmp_path: Path):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    columns = {"bag_id": ["=1+1", "b\x07"], "probability": [0.25, 1.0], "candidates": [["a", "b"], ["c"]]}
    write_table(columns, tmp_path / "x.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    assert [[cell.value for cell in row] for row in sheet.rows] == [
        ["bag_id", "probability", "candidates"],
        ["=1+1", 0.25, "a|b"],
        ["b\ufffd", 1, "c"],
    ]
    assert sheet["A2"].data_type == "s"


def test_without_openpyxl_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    for attempt in (lambda: mipl.load(tmp_path / "x.xlsx"), lambda: write_table({"a": [1]}, tmp_path / "y.xlsx")):
        with pytest.raises(UnavailableError, match=r"pip install 'mipl\[excel\]'"):
            attempt()


def test_a_damaged_workbook_is_a_clear_error(tmp_path: Path):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    pd.DataFrame({"bag_id": [1, 2], "candidates": ["a", "b"], "w": [1, 2]}).to_excel(tmp_path / "x.xlsx", index=False)
    content = (tmp_path / "x.xlsx").read_bytes()
    for end in (0, 10, len(content) // 2, len(content) - 5):
        (tmp_path / "x.xlsx").write_bytes(content[:end])
        with pytest.raises(DataError):
            mipl.load(tmp_path / "x.xlsx")


def test_numbers_that_are_text_with_decimal_commas_are_read_and_other_sheets_are_told(tmp_path: Path):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    frame = pd.DataFrame({"bag_id": ["a", "a", "b"], "candidates": ["x|y", None, "y"], "n": ["1,5", "2,5", "3,25"]})
    with pd.ExcelWriter(tmp_path / "x.xlsx") as book:
        frame.to_excel(book, sheet_name="Daten", index=False)
        frame.to_excel(book, sheet_name="Notizen", index=False)
    assert mipl.load(tmp_path / "x.xlsx").bags.instances.tolist() == [[1.5], [2.5], [3.25]]
    (remark,) = mipl.check(tmp_path / "x.xlsx").remarks
    assert remark.endswith("read from the first sheet, 'Daten'; not read: 'Notizen'")
    frame.loc[3] = ["c", "y", "1,5"]
    frame["n"] = ["1,5", 2.75, "1.234", "2,5"]  # cells of text and of numbers in one column
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    with pytest.raises(DataError, match=r"line 4, bag 'b', instance 0, column 'n': '1\.234' is not a number"):
        mipl.load(tmp_path / "x.xlsx")
    assert mipl.load(tmp_path / "x.xlsx", missing="drop").bags.instances.tolist() == [[1.5], [2.75], [2.5]]
