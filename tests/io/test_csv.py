"""CSV files: spreadsheets as people make them, names that cannot be columns, and any text at all."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import load_or_refuse, same_folder

import mipl
from mipl.errors import DataError
from mipl.io.options import Columns
from mipl.scanning.chunks import read_chunks


def test_a_spreadsheet_with_scattered_rows_and_blanks_is_read(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("bag_id,label,candidates,width,height\nb,,owl | wren,1,2\na,owl,owl,3,4\nb,,,5,6\n")
    ds = mipl.load(path)
    assert ds.bag_ids.tolist() == ["b", "a"]
    assert [bag.tolist() for bag in ds.bags] == [[[1, 2], [5, 6]], [[3, 4]]]
    assert ds.classes.tolist() == ["owl", "wren"]
    assert ds.labels.tolist() == [-1, 0]
    assert ds.bags.feature_names == ("width", "height")


def test_a_spreadsheet_with_votes_sets_and_blanks_is_read(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("bag_id,candidates,width\na,owl:3|wren:0.5,1\nb,,2\nc,lark|owl,3\nd,7:30 train,4\n")
    ds = mipl.load(path)
    assert ds.classes.tolist() == ["7:30 train", "lark", "owl", "wren"]
    assert ds.candidate_weights.tolist() == [[0, 0, 3, 0.5], [0.5] * 4, [0, 0.5, 0.5, 0], [0.5, 0, 0, 0]]


def test_votes_that_read_like_class_names_stay_votes(tmp_path):
    ds = mipl.MIPLDataset(np.zeros((2, 1, 1)), np.eye(2), classes=["a", "a:1"], candidate_weights=np.eye(2))
    path = ds.save(tmp_path / "x.csv")
    assert path.read_text().splitlines()[2].split(",")[1] == '"a:1"'  # one vote for a, and no vote is the name a:1
    assert mipl.load(path).equals(ds)


def test_a_bad_weight_in_a_spreadsheet_names_file_and_bag(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("bag_id,candidates,width\na,owl:3|wren:1,1\nb,owl:-3,2\n")
    with pytest.raises(DataError, match=r"s\.csv: line 3, bag 'b': the weight -3 of the candidate 'owl'"):
        mipl.load(path)


def test_feature_names_are_the_column_names(tmp_path):
    bags = mipl.Bags(np.ones((2, 2)), [0, 1, 2], feature_names=["body mass, g", "wing"])
    path = mipl.MIPLDataset(bags, [{"owl", "wren"}, {"owl"}]).save(tmp_path / "x.csv")
    with path.open(newline="") as file:
        assert next(csv.reader(file)) == ["bag_id", "candidates", "body mass, g", "wing"]


@pytest.mark.parametrize("name", ["bag_id", "candidates", "label", "instance_label", "group", "two\nlines", 'a "b"'])
def test_a_feature_name_that_cannot_be_a_column_is_refused(tmp_path, name):
    bags = mipl.Bags(np.ones((2, 2)), [0, 1, 2], feature_names=["wing", name])
    with pytest.raises(DataError, match="cannot be a CSV column; rename it or save as"):
        mipl.MIPLDataset(bags, [{"owl", "wren"}, {"owl"}]).save(tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


cell = st.one_of(
    st.sampled_from(["", "a", "a|b", "1", "-2.5", "nan", "1e999", '"', "é", "#", "x y"]), st.text(max_size=4)
)


@given(
    header=st.lists(
        st.sampled_from(["bag_id", "candidates", "label", "instance_label", "f0", "f1", ""]), min_size=0, max_size=6
    ),
    rows=st.lists(st.lists(cell, max_size=6), max_size=5),
    mark=st.sampled_from(["", "# mipl {}\n", '# mipl {"classes": ["a", 1]}\n', "# mipl [\n", "\ufeff"]),
)
@same_folder
def test_any_text_as_csv_gives_a_data_set_or_a_clear_error(tmp_path, header, rows, mark):
    path = tmp_path / "fuzz.csv"
    path.write_text(mark + "\n".join(",".join(r) for r in [header, *rows]), encoding="utf-8", errors="replace")
    load_or_refuse(path)


@given(content=st.binary(max_size=200))
@same_folder
def test_any_bytes_as_csv_give_a_data_set_or_a_clear_error(tmp_path, content):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(b"bag_id,candidates,f0\n" + content)
    load_or_refuse(path)


def test_a_header_and_a_first_line_may_be_long(tmp_path):
    names = [f"class number {i}" for i in range(20_000)]
    bags = mipl.Bags(np.zeros((2, 3), np.float32), [0, 1, 2], feature_names=[c * 100_000 for c in "xyz"])
    ds = mipl.MIPLDataset(bags, [names[:2], names[1:3]], classes=names)
    path = ds.save(tmp_path / "x.csv")
    assert mipl.load(path).equals(ds)
    wanted = [*read_chunks([path], Columns(), None, 1)]
    assert [part.dataset.bags.feature_names for part in wanted] == [bags.feature_names] * 2
    everything = mipl.MIPLDataset(bags, [names, names[:1]], classes=names)
    with pytest.raises(DataError, match="a cell would have more than 131,072 characters"):
        everything.save(tmp_path / "y.csv")


def test_the_line_of_a_bad_cell_counts_empty_lines_and_cells_of_several_lines(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('bag_id,candidates,x,note\na,b|c,1,ok\n\n\nb,c,2,"two\nlines"\nc,c|b,zz,x\n')
    assert path.read_text().splitlines()[6].startswith("c,c|b,zz")
    with pytest.raises(DataError, match="line 7, bag 'c', instance 0, column 'x': 'zz' is not a number"):
        mipl.load(path)


def test_the_line_in_which_excel_names_the_separator_is_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("sep=;\r\nbag_id;candidates;x\r\na;owl|wren;1,5\r\nb;owl;2,5\r\nc;wren;\r\n")
    with pytest.raises(DataError, match="line 5, bag 'c'"):
        mipl.load(path)
    ds = mipl.load(path, missing="drop")
    assert ds.bags.instances.tolist() == [[1.5], [2.5]]
    assert ds.bags.feature_names == ("x",)


def test_rows_of_another_length_are_told_all_at_once_with_their_lines(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("bag_id,candidates,x,y\na,b|c,1,2\nb,c,1\n\nc,c|b,1,2,3\nd,c,1,\n")
    first, second = mipl.check(path).problems[:2]
    assert "line 3 has 3 cells where there are 4 columns: 'b,c,1'; 1 more" in first.message
    assert "line 5" in first.message
    assert "line 6, bag 'd', instance 0, column 'y'" in second.where
    with pytest.raises(DataError, match="line 3 has 3 cells where there are 4 columns"):
        mipl.load(path)


def test_a_column_of_dates_does_not_decide_the_decimal_mark(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("bag_id;candidates;day;x;y\na;owl|wren;12.05;1,5;0,5\nb;owl;13.05;2,5;1,5\n")
    assert mipl.load(path, ignore="day").bags.instances.tolist() == [[1.5, 0.5], [2.5, 1.5]]


@pytest.mark.parametrize("cell", ["1.234", "12.05", "1_2", "1.234,5", "1\u0662", "0x1", "1e", "nan(1)"])
def test_a_number_is_written_with_the_decimal_mark_of_the_file_and_nothing_else(tmp_path, cell):
    path = tmp_path / "x.csv"
    path.write_text(f"bag_id;candidates;x;y\na;owl|wren;1,5;2,5\nb;owl;2,;{cell}\nc;wren;,5;+3e2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3, bag 'b', instance 0, column 'y': .* is not a number"):
        mipl.load(path)
    (problem,) = mipl.check(path).problems
    assert (problem.kind, problem.severity) == ("not a number", "error")
    assert ("decimal='.'" in problem.remedy) == (cell in ("1.234", "12.05"))
    assert mipl.load(path, missing="drop").bags.instances.tolist() == [[1.5, 2.5], [0.5, 300]]
    path.write_text(path.read_text(encoding="utf-8").replace(",", ".").replace(";", ","), encoding="utf-8")
    wrong = cell not in ("1.234", "12.05")
    assert [problem.kind for problem in mipl.check(path).problems] == ["not a number"] * wrong


def test_columns_of_points_in_a_file_of_decimal_commas_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("bag_id;candidates;day;x\na;owl|wren;12.05;1,5\nb;owl;13.05;2,5\nc;wren;;3\n")
    assert mipl.load(path).bags.feature_names == ("x",)
    (problem,) = mipl.check(path).problems
    assert problem.severity == "warning"
    for word in ("line 2, column 'day'", "'12.05' looks like numbers with a decimal point", "--ignore 'day'"):
        assert word in str(problem)


def test_text_is_no_number_in_lists_either(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"bag_id": 1, "candidates": ["a", "b"], "instances": [["1_2", 2.0]]}\n')
    with pytest.raises(DataError):
        mipl.load(path)


def test_names_of_groups_that_only_look_like_numbers_are_names(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("bag_id,candidates,group,x\n1,a|b,7_1,1.5\n2,a,7_2,2.5\n3,b,7_1,2\n")
    assert mipl.load(path).groups.tolist() == [0, 1, 0]


@pytest.mark.parametrize("sep", ["|", " ", ":"])
def test_a_separator_that_is_not_detected_is_suggested(tmp_path, sep):
    path = tmp_path / "x.csv"
    path.write_text("bag_id|candidates|x\na|owl,wren|1\nb|owl|2\n".replace("|", sep))
    with pytest.raises(DataError, match="single column") as told:
        mipl.load(path)
    assert f"--sep {sep!r}" in str(told.value)
    assert len(mipl.load(path, sep=sep, candidates_sep=",")) == 2


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_a_title_above_the_columns_is_told(tmp_path, sep):
    path = tmp_path / "x.csv"
    path.write_text("My birds of 2024\n\n" + "bag_id|candidates|x\na|owl|1\nb|wren|2\n".replace("|", sep))
    with pytest.raises(DataError, match=r"the first line, 'My birds of 2024', does not name the columns"):
        mipl.load(path)


def test_a_first_line_that_a_spreadsheet_rewrote_is_told(tmp_path):
    path = tmp_path / "x.csv"
    mipl.MIPLDataset([[[1.0]], [[2.0]]], [["b", "a"], ["b"]], classes=["b", "a"]).save(path)
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    path.write_text('"' + first.replace('"', '""') + '"\n' + rest, encoding="utf-8")
    with pytest.raises(DataError, match="a spreadsheet has rewritten the first line"):
        mipl.load(path)
