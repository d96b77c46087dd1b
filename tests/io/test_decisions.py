"""Decisions: read as they were written, applied to the bags that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mipl import BagGP, DataError, MIPLDataset, load, resolve
from mipl.io.decisions import apply_decisions, read_decisions


@pytest.fixture
def birds() -> MIPLDataset:
    return MIPLDataset(
        [np.full((2, 3), i) for i in range(4)],
        [{"owl", "wren"}, {"owl", "tit"}, {"wren", "tit"}, {"owl", "wren", "tit"}],
        labels=["owl", "owl", None, "tit"],
        bag_ids=["a", "b", "c", "d"],
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "d.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_file_is_read_whatever_a_spreadsheet_made_of_it(tmp_path, separator):
    rows = [["bag_id", "decision"], ["a", "wren"], ["'-3", "none of these"], ["'=x", "'none of these"], ["b", ""]]
    rows += [["''quoted", "'"], ['"two\nlines"', '"with "", ; and\ttab"']]
    text = "\ufeff" + "\r\n".join(separator.join(row) for row in rows) + "\r\n"
    assert read_decisions(written(tmp_path, text)) == {
        "a": "wren",
        "-3": None,
        "=x": "none of these",
        "'quoted": "",
        "two\nlines": 'with ", ; and\ttab',
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bag,decision\na,b\n", r"has no column 'bag_id'; a file of decisions has bag_id, decision"),
        ("", r"has no column 'bag_id'"),
        ("bag_id,decision,decision\na,owl,wren\n", r"has more than one column 'decision'"),
        ("bag_id,decision\na,owl\na,wren\n", r"bag 'a' is decided twice, in different ways"),
    ],
)
def test_a_file_that_is_not_one_of_decisions_says_why(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_decisions(written(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_decisions(tmp_path / "nothing.csv")
    (tmp_path / "d.csv").write_bytes(b"\xff\xfebag_id,decision")
    with pytest.raises(DataError, match="is not text"):
        read_decisions(tmp_path / "d.csv")


def test_a_decided_bag_has_one_candidate_and_the_truth_stays(birds):
    decided = apply_decisions(birds, {"a": "wren", "c": "tit"})
    assert decided.candidate_sets() == [["wren"], ["owl", "tit"], ["tit"], ["owl", "tit", "wren"]]
    assert decided.label_names() == ["owl", "owl", None, "tit"]
    assert birds.candidate_sets()[0] == ["owl", "wren"]
    assert not decided.candidates.flags.writeable


def test_a_bag_with_no_right_candidate_is_left_out(birds):
    decided = apply_decisions(birds, {"b": None, "d": "owl"})
    assert decided.bag_ids.tolist() == ["a", "c", "d"]
    assert decided.candidate_sets() == [["owl", "wren"], ["tit", "wren"], ["owl"]]
    assert decided.label_names() == ["owl", None, "tit"]
    assert np.array_equal(decided.bags[1], birds.bags[2])


def test_a_person_may_know_a_class_that_is_no_candidate(birds):
    assert apply_decisions(birds, {"c": "owl"}).candidate_sets()[2] == ["owl"]


def test_ids_and_classes_that_are_numbers_are_matched_by_their_digits():
    numbers = MIPLDataset([np.ones((1, 2))] * 2, [{3, 4}, {-5, 4}], bag_ids=[-7, 8])
    assert apply_decisions(numbers, {"-7": "4", "8": "-5"}).candidate_sets() == [[4], [-5]]


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"a": "owl", "x": "owl", "y": None}, r"bags that are not in the data: 'x', 'y'; is it the right file\?"),
        ({f"x{i}": None for i in range(9)}, r"'x0', 'x1', 'x2', 'x3', 'x4' and 4 more"),
        (
            {"a": "eagle"},
            r"classes that are not in the data: 'eagle' \(bag 'a'\); the classes are 'owl', 'tit', 'wren'",
        ),
        (dict.fromkeys("abcd"), r'every bag is marked "none of these"'),
    ],
)
def test_decisions_that_do_not_fit_the_data_name_the_bags_and_classes(birds, decisions, message):
    with pytest.raises(DataError, match=message):
        apply_decisions(birds, decisions)


def test_a_decision_outweighs_all_votes_and_survives_a_file(tmp_path):
    votes = [{"owl": 9, "wren": 1}, {"owl": 1, "wren": 2}, {"tit": 1, "wren": 3}, {"tit": 1, "owl": 2}]
    data = MIPLDataset([np.full((2, 3), i) for i in range(4)], votes, bag_ids=["a", "b", "c", "d"])
    # A candidate with few votes, a class without any, and a bag that is left out.
    decided = apply_decisions(data, {"a": "wren", "b": "tit", "c": None})
    wanted = MIPLDataset(decided.bags, ["wren", "tit", votes[3]], bag_ids=["a", "b", "d"])
    assert decided.equals(wanted)
    assert load(decided.save(tmp_path / "x.parquet")).equals(wanted)
    model = BagGP(n_landmarks=4, cross_fit=0).fit(decided)
    assert resolve(decided, model).labels.tolist()[:2] == ["wren", "tit"]


def test_a_file_that_a_spreadsheet_saved_in_its_own_encoding_is_read(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes("bag_id;decision\r\nKäuzchen 1;Grünfink\r\n".encode("cp1252"))
    assert read_decisions(path) == {"Käuzchen 1": "Grünfink"}
