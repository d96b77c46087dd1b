"""Tables of answers: the same rows in every format, in the format that the suffix names."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mipl.errors import DataError
from mipl.io.tables import rows_of, write_table, write_tables

COLUMNS = {
    "bag_id": [7, 8],
    "label": ["owl", 'a "b", c'],
    "probability": [1 / 3, 1.0],
    "second_label": ["wren", None],
    "candidates": [["owl", "wren"], ["é"]],
}


def test_csv_joins_lists_and_leaves_unknown_values_empty(tmp_path: Path):
    path = write_table(COLUMNS, tmp_path / "x.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == COLUMNS["label"]
    assert [row["candidates"] for row in rows] == ["owl|wren", "é"]
    assert [row["probability"] for row in rows] == ["0.333333", "1.0"]
    assert [row["second_label"] for row in rows] == ["wren", ""]


def test_json_lines_are_the_rows(tmp_path: Path):
    path = write_table(COLUMNS, tmp_path / "x.JSONL")
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == rows_of(COLUMNS)
    assert rows_of(COLUMNS)[1] == {
        "bag_id": 8,
        "label": 'a "b", c',
        "probability": 1.0,
        "second_label": None,
        "candidates": ["é"],
    }


def test_parquet_keeps_types_and_full_precision(tmp_path: Path):
    assert pq.read_table(write_table(COLUMNS, tmp_path / "x.parquet")).to_pydict() == COLUMNS


def test_parquet_has_numbers_of_instances_though_the_first_rows_have_none(tmp_path: Path):
    chunks = [{"instance": [None], "truth": [None]}, {"instance": [3], "truth": ["owl"]}]
    write_tables(iter(chunks), tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").to_pydict() == {"instance": [None, 3], "truth": [None, "owl"]}


@pytest.mark.parametrize("name", ["x.xls", "x", "x.npz"])
def test_an_unknown_suffix_is_refused_with_the_list(tmp_path: Path, name: str):
    with pytest.raises(DataError, match=r"one of \.csv, \.jsonl, \.parquet"):
        write_table(COLUMNS, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_dash_is_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_table(COLUMNS, "-")
    assert capsys.readouterr().out == write_table(COLUMNS, tmp_path / "x.csv").read_text()
    assert os.listdir(tmp_path) == ["x.csv"]
