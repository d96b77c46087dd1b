"""Cells of candidates in the ways that people and programs write a list."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from io_support import same_folder

import mipl
from mipl.io.cells import candidate_cell

name = st.text(st.characters(categories=("L", "Nd")), min_size=1, max_size=6)


@given(names=st.lists(name, min_size=1, max_size=4))
def test_every_way_to_print_a_list_of_names_gives_them_back(names):
    assert candidate_cell(str(names)) == names
    assert candidate_cell(str(tuple(names))) == names
    assert candidate_cell(str(np.array(names))) == names
    assert candidate_cell(names) == names
    assert candidate_cell(" | ".join(names)) == names
    assert candidate_cell(",".join(names), sep=",") == names


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("[1, 2]", [1, 2]),
        (3.0, [3]),
        (None, []),
        (float("nan"), []),
        ("", []),
        ("(a)", ["(a)"]),
        ({"a": 2, "b": 0}, {"a": 2, "b": 0}),
    ],
)
def test_other_cells(cell, labels):
    assert candidate_cell(cell) == labels


@given(sets=st.lists(st.sets(name, min_size=1, max_size=3), min_size=2, max_size=4))
@same_folder
def test_a_column_of_lists_survives_pandas_csv(tmp_path, sets):
    sets = [sorted(s) for s in sets]
    if len({v for s in sets for v in s}) < 2:
        return
    data = pd.DataFrame({"bag_id": range(len(sets)), "candidates": sets, "w": 0.5})
    data.to_csv(tmp_path / "x.csv", index=False)
    found = mipl.load(tmp_path / "x.csv").candidate_sets()
    assert [sorted(map(str, s)) for s in found] == [sorted(set(s)) for s in sets] or any(
        v.isdecimal() for s in sets for v in s
    )


@given(st.sets(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1), min_size=2))
@example({"it's", 'a "wren"', "b'o\"th", "C:\\new", "tab\there", "line\nend", "\u200bzero", "\U000e0001tag"})
@same_folder
def test_names_that_python_escapes_when_it_prints_a_list_come_back(tmp_path, names):
    cells = [["n" + name] for name in names]  # a number would be read as one
    for column in (cells, [np.array(cell) for cell in cells], [tuple(cell) for cell in cells]):
        pd.DataFrame({"bag_id": range(len(cells)), "candidates": column, "w": 0.5}).to_csv(tmp_path / "x.csv")
        found = mipl.load(tmp_path / "x.csv")
        assert [labels for (labels,) in found.candidate_sets()] == [name for (name,) in cells]
