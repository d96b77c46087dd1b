"""Columns that were not named: the error suggests those that look right, and the suggestion works."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mipl
from mipl.errors import DataError
from mipl.io.columns import likely_columns

TABLE = {
    "site": ["A"] * 6,
    "recording": ["r1", "r1", "r2", "r2", "r3", "r3"],
    "syllable": ["s1", "s2"] * 3,
    "species": ["owl, wren", "", "wren, jay", "", "owl, jay", ""],
    "pitch": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
}
NOTHING: dict[str, str | None] = {"bag": None, "candidates": None}


def test_the_bag_comes_in_runs_and_candidates_share_their_parts():
    expected = {"bag": "recording", "candidates": "species", "candidates_sep": ","}
    assert likely_columns(pa.table(TABLE), NOTHING) == expected
    assert likely_columns(pa.table(TABLE), {**NOTHING, "bag": "recording"}) == {
        "candidates": "species",
        "candidates_sep": ",",
    }


def test_a_bag_may_be_a_number():
    table = pa.table({"rec": [1, 1, 2, 3], "w": [1.5, 2.0, 1.5, 2.0], "n": [4.0, 2.0, 4.0, 2.0]})
    assert likely_columns(table, NOTHING) == {"bag": "rec"}


def test_lists_of_text_are_candidates():
    table = pa.table({"img": ["a", "a", "b"], "vector": [[1.0], [2.0], [3.0]], "tags": [["x"], ["x"], ["y"]]})
    assert likely_columns(table, NOTHING) == {"bag": "img", "candidates": "tags"}


@pytest.mark.parametrize(
    "remark", [["loud, far", "soft", "near", "", "", ""], ["12,5", "1,5", "3,5", "1,5", "2,5", "1,5"]]
)
def test_remarks_and_numbers_are_no_candidates(remark):
    table = pa.table({"remark": remark, "pitch": TABLE["pitch"]})
    assert likely_columns(table, NOTHING) == {}


def test_what_the_error_suggests_reads_the_file(tmp_path: Path):
    path = tmp_path / "x.csv"
    rows = [";".join(map(str, row)) for row in zip(*TABLE.values(), strict=True)]
    path.write_text("\n".join([";".join(TABLE), *rows]) + "\n")
    with pytest.raises(DataError) as told:
        mipl.load(path)
    suggested = "bag='recording', candidates='species', candidates_sep=','"
    assert suggested in str(told.value)
    assert "--bag 'recording' --candidates 'species' --candidates-sep ','" in str(told.value)
    ds = eval(f"mipl.load(path, {suggested})")
    assert ds.candidate_sets() == [["owl", "wren"], ["jay", "wren"], ["jay", "owl"]]
    (problem,) = [p for p in mipl.check(path, bag="recording").problems if p.severity == "error"]
    assert "--candidates 'species' --candidates-sep ','" in problem.remedy
