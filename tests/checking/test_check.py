"""mipl.check: every problem that was put into a file is found, at its place, with what mends it, all at once."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from io_support import datasets, same_folder

import mipl
from mipl.errors import DataError


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("bag_id,candidates,label,width,height\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


CLEAN = [
    "a,owl|wren,owl,1,5.5",
    "a,,,2,4.5",
    "b,wren,,3,3.25",
    "c,owl,,4,2.75",
    "d,owl|robin,,5,1.5",
    "e,robin|wren,,6,0.5",
]


def kinds(report: object) -> dict[str, object]:
    return {problem.kind: problem for problem in report.problems}


def test_a_clean_file_has_no_problems(tmp_path: Path):
    report = mipl.check(write(tmp_path / "x.csv", CLEAN))
    assert report.problems == ()
    assert report.verdict == "5 bags, 6 instances, 3 classes: usable (no problems)"
    assert report.summary["candidate_of"] == {"owl": 3, "robin": 2, "wren": 3}
    assert report.summary["candidate_sizes"] == {"1": 2, "2": 3}


@pytest.mark.parametrize(
    ("lines", "kind", "severity", "words"),
    [
        ([*CLEAN, "f,,,7,1"], "bag without candidates", "warning", ["bag 'f' (line 8)", "1 of 6 bags"]),
        ([*CLEAN, "f,owl,,,1"], "missing value", "error", ["line 8", "bag 'f'", "column 'width'", "missing='drop'"]),
        ([*CLEAN, "f,owl,,inf,1"], "infinite value", "error", ["line 8", "bag 'f'", "column 'width'"]),
        ([*CLEAN, "f,owl,,7x,1"], "not a number", "error", ["line 8", "'7x'", "column 'width'"]),
        ([*CLEAN, "f,owl,,1e99,1"], "value too large", "error", ["line 8", "1e+99", "rescale"]),
        ([*CLEAN, "f,owl,robin,7,1"], "label outside the candidates", "warning", ["line 8", "'robin'", "['owl']"]),
        ([*CLEAN, "a,wren,,7,1"], "rows of a bag disagree", "error", ["line 8", "bag 'a'"]),
        ([*CLEAN, "f,Owl |wren,,7,1"], "near-duplicate classes", "warning", ["'Owl' and 'owl'", "line 8"]),
        (
            [*CLEAN, 'f,"owl, wren",,7,1'],
            "candidates not separated",
            "warning",
            ["'owl, wren'", "--candidates-sep ','"],
        ),
        (
            [*CLEAN, 'f,"Parus major, Turdus merula",,7,1'],
            "candidates not separated",
            "warning",
            ["line 8", "may be several classes", "--candidates-sep ','"],
        ),
        ([*CLEAN, "f,owl|,,7,1"], "candidates unreadable", "error", ["line 8", "bag 'f'", "'owl|'", "empty label"]),
        ([*CLEAN, ",owl,,7,1", ",,,8,1"], "no bag", "error", ["line 8", "1 more: line 9"]),
        ([*CLEAN, "f,owl,thrush,7,1"], "label of no bag's candidates", "error", ["line 8", "'thrush'"]),
        ([*CLEAN, "f,owl,,7,1", "f,,,7,1"], "duplicated instance", "note", ["bag 'f' (lines 8 and 9)"]),
        ([*CLEAN, "f,crow|jay,,7,1", "g,jay|crow,,8,1"], "always together", "warning", ["'crow' and 'jay'", "2 bags"]),
        ([*CLEAN, "f,crow|owl,,7,1"], "rare class", "warning", ["'crow'"]),
        ([*CLEAN, "f,wren,,3,3.25"], "duplicated bag", "warning", ["'b' and 'f'"]),
        ([*CLEAN, "b,wren,,3,3.25"], "duplicated instance", "note", ["bag 'b'"]),
        ([line.rpartition(",")[0] + ",7" for line in CLEAN], "constant feature", "warning", ["column 'height'"]),
        ([*CLEAN, "f,wren:2|owl,,7,1"], "vote forgotten", "warning", ["line 8, bag 'f'", "'wren:2' has a vote"]),
        ([*CLEAN, "f,NaN,,7,1"], "missing value as a class", "warning", ["line 8, bag 'f'", "'NaN'"]),
        ([*CLEAN, "f,owl|None,,7,1"], "missing value as a class", "warning", ["line 8, bag 'f'", "'None'"]),
        ([*CLEAN, "f,\u00c5|owl,,7,1", "g,A\u030a,,8,1"], "two Unicode forms", "warning", ["bag 'g'", r"'A\u030a'"]),
        (
            [f"{line.rsplit(',', 2)[0]},{1_700_000_000 + i},1.5" for i, line in enumerate(CLEAN)],
            "digits lost",
            "warning",
            ["line 2, bag 'a', instance 0, column 'width'", "1700000001 in line 3", "of 6 values 1 are left"],
        ),
        (
            [f"{name},{'0|1|1' if name in 'ac' else '1|1|1'},,{i}.5,1" for i, name in enumerate("abcd")],
            "candidates like a mask",
            "warning",
            ["line 2, bag 'a'", "line 3, bag 'b'", "labels 0 and 1"],
        ),
        ([*CLEAN[2:], "b,,,3,2", "c,,,4,2"], "constant within bags", "warning", ["column 'width'", "--ignore 'width'"]),
        (["a,owl|wren,,1,5", "a,,,2,4", "b,owl,,1,4", "b,,,2,9"], "counts within bags", "warning", ["column 'width'"]),
        (["a,owl,,1,1", "b,owl,,2,3"], "one class", "error", ["owl"]),
        (["a,owl|wren,,1,1", "b,owl|wren,,2,3"], "nothing known", "error", ["every class is a candidate"]),
    ],
)
def test_each_problem_is_found_at_its_place_with_its_remedy(tmp_path: Path, lines, kind, severity, words):
    report = mipl.check(write(tmp_path / "x.csv", lines))
    found = kinds(report)
    assert kind in found, str(report)
    assert found[kind].severity == severity
    for word in words:
        assert word in str(found[kind])
    assert report.usable == (severity != "error")


def test_missing_values_of_many_columns_are_one_line_with_counts(tmp_path: Path):
    (problem,) = mipl.check(write(tmp_path / "x.csv", [*CLEAN, "f,owl,,,1", "g,wren,,,"])).problems
    assert problem.kind == "missing value"
    for word in ("line 8, bag 'f'", "3 in all: 2 in column 'width', 1 in column 'height'", "--missing drop|mean"):
        assert word in str(problem)


PARAGRAPHS = [("a", "owl|wren", "so"), ("a", "", "it"), ("b", "owl", "goes"), ("b", "", "on"), ("b", "", "and on")]


def test_text_beside_the_numbers_of_its_rows_is_not_usable(tmp_path: Path):
    path = tmp_path / "x.csv"
    lines = [f"{bag},{sets},{text},{k}" for (bag, sets, text), k in zip(PARAGRAPHS, [1, 2, 1, 2, 3], strict=True)]
    path.write_text("bag_id,candidates,text,paragraph\n" + "\n".join(lines) + "\n")
    problem = mipl.check(path).problems[0]
    assert (problem.kind, problem.severity) == ("no features", "error")
    assert "'text'" in problem.message
    with pytest.raises(DataError, match="'paragraph', is the number of a row in its bag; turn the text into numbers"):
        mipl.load(path)
    assert mipl.check(path, features="paragraph").usable  # who asks for it gets it, with a warning
    assert "counts within bags" in kinds(mipl.check(path, features="paragraph"))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("f,wren:2|owl,,7,1", "has a vote"),
        ("f,<NA>,,7,1", "missing value"),
        ("f,\u00c5|A\u030a,,7,1", "Unicode forms"),
        ("f,owl,,16777217,1\nf,,,16777216,1", "one number in single precision"),
    ],
)
def test_loading_warns_too_of_what_it_reads_otherwise_than_meant(tmp_path: Path, line, word):
    path = write(tmp_path / "x.csv", [*CLEAN, line])
    with pytest.warns(UserWarning, match=f"line 8, bag 'f'.*{word}"):
        mipl.load(path)
    with pytest.warns(UserWarning, match=word):
        mipl.load(pd.read_csv(path, keep_default_na=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mipl.load(write(path, CLEAN))
        mipl.check(path)  # a report says it, and not a warning too


def test_lists_of_zeros_and_ones_are_labels_with_a_warning():
    bags = [np.ones((1, 2))] * 3
    with pytest.warns(UserWarning, match=r"bag 'p' and 2 more: .* labels 0 and 1; .*numpy.array"):
        assert mipl.MIPLDataset(bags, [[0, 1, 1], [1, 0, 0], [0, 1, 0]], bag_ids=["p", "q", "r"]).n_classes == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mipl.MIPLDataset(bags, [[0, 1], [1], [0]])
        mipl.MIPLDataset(bags, [[0, 1]] * 3)
        mipl.MIPLDataset(bags, np.array([[0, 1], [1, 0], [0, 1]]))
        mipl.MIPLDataset(bags, ["chr:1|chrX", "chrX", "chr:1"], classes=["chr:1", "chrX"])


def test_all_problems_are_told_at_once(tmp_path: Path):
    lines = [*CLEAN, "f,,,7,1", "g,owl,robin,8,", "h,Owl,,9,x", "g,wren,,2,2"]
    found = kinds(mipl.check(write(tmp_path / "x.csv", lines)))
    assert {
        "bag without candidates",
        "label outside the candidates",
        "missing value",
        "not a number",
        "near-duplicate classes",
        "rows of a bag disagree",
    } <= set(found)


def test_candidates_that_are_not_separated_are_one_problem_and_not_four(tmp_path: Path):
    rows = [('"owl, wren"', "wren"), ('"jay, owl"', "jay"), ("wren", "wren"), ('"jay, Owl"', "jay"), ("robin", "owl")]
    lines = [f"{i},{cell},{label},{i}.5,{i % 3}" for i, (cell, label) in enumerate(rows)]
    found = kinds(mipl.check(write(tmp_path / "x.csv", lines)))
    assert found["candidates not separated"].severity == "error"  # the label 'jay' is no class as it stands
    assert "'Owl' and 'owl'" in found["near-duplicate classes"].message  # told of the names as they are meant
    assert "bag 4 (line 6)" in found["label outside the candidates"].where
    assert "more" not in found["label outside the candidates"].message
    with pytest.raises(mipl.MIPLError, match="pass candidates_sep=','"):
        mipl.load(tmp_path / "x.csv")
    assert mipl.check(tmp_path / "x.csv", candidates_sep=",").usable


def test_a_folder_of_images_without_a_table_says_what_is_missing(tmp_path: Path):
    from PIL import Image

    for i in range(2):
        Image.new("RGB", (64, 64), (i, 9, 9)).save(tmp_path / f"{i}.png")
    told = str(kinds(mipl.check(tmp_path))["no candidates"])
    assert "nothing says which labels are possible" in told
    assert "--table FILE" in told


def test_ids_and_indices_among_the_columns_are_told(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text(
        "bag_id,candidates,width,speaker_id\n" + "\n".join(f"{i},{'ab'[i % 2]}|c,{i * i},3" for i in range(5))
    )
    assert "speaker_id" in kinds(mipl.check(path))["column left out"].where
    asked = kinds(mipl.check(path, features=["width", "speaker_id"]))
    assert "--ignore 'speaker_id'" in asked["looks like an id"].remedy


def test_a_wildly_scaled_feature_is_told(tmp_path: Path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    X[:, 2] *= 1e7
    bags = mipl.Bags(X, np.arange(0, 21, 2), feature_names=["a", "b", "c", "d"])
    found = kinds(mipl.check(mipl.MIPLDataset(bags, [{"x"}, {"y"}] * 5)))
    assert "column 'c'" in found["wildly scaled"].message


def test_missing_values_that_an_option_takes_care_of_stop_nothing(tmp_path: Path):
    path = write(tmp_path / "x.csv", [*CLEAN, "f,owl,,,1"])
    assert not mipl.check(path).usable
    assert mipl.check(path, missing="mean").usable
    assert mipl.check(path, missing="drop").usable


@pytest.mark.parametrize("source", ["none.csv", "none", []])
def test_what_cannot_be_read_is_a_problem_and_not_an_exception(source):
    report = mipl.check(source)
    assert [problem.kind for problem in report.problems] == ["unreadable"]
    assert not report.usable


@given(ds=datasets())
@same_folder
def test_a_file_is_usable_exactly_if_it_loads_and_has_something_to_learn(tmp_path: Path, ds):
    path = ds.save(tmp_path / "x.csv")
    report = mipl.check(path)
    stops = {problem.kind for problem in report.problems if problem.severity == "error"}
    assert stops <= {"one class", "nothing known", "nothing differs"}
    if report.usable:
        mipl.load(path)


def test_what_check_calls_unusable_for_its_values_load_refuses(tmp_path: Path):
    path = write(tmp_path / "x.csv", [*CLEAN, "f,owl,,1e99,1"])
    assert not mipl.check(path).usable
    with pytest.raises(DataError, match="beyond"):
        mipl.load(path)


def test_problems_of_all_kinds_are_told_in_one_go(tmp_path: Path):
    lines = [*CLEAN, "f,owl|,thrush,,1", ",owl,,7,1", "g,owl", "h,wren,,1e99,2"]
    found = kinds(mipl.check(write(tmp_path / "x.csv", lines)))
    expected = {"candidates unreadable", "label of no bag's candidates", "missing value", "no bag", "cells missing"}
    assert expected | {"value too large"} <= set(found)


def test_missing_values_do_not_make_bags_alike_or_features_constant(tmp_path: Path):
    found = kinds(mipl.check(write(tmp_path / "x.csv", ["a,owl|wren,,1,2", "b,owl,,,", "c,wren,,,"])))
    assert "missing value" in found
    assert not {"duplicated bag", "nothing differs"} & set(found)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1.234,5", "2.111.234,5", "3,5"], "marks between thousands"),
        (["50%", "30 %", "20%"], None),
        (["50%", "30%", "20.5%"], "a unit"),
        (["10 kHz", "2,5 kHz", "3 kHz"], "a unit"),
        (["12.05.2024", "13.05.2024", "14.05.2024"], None),
        (["1a", "2b", "3c"], None),
        (["loud", "soft", "-"], None),
    ],
)
def test_numbers_that_were_left_out_as_text_are_told(tmp_path: Path, cells, words):
    rows = [f"{bag};owl|wren;{cell};1" for bag, cell in zip("abc", cells, strict=True)]
    (tmp_path / "x.csv").write_text("bag_id;candidates;odd;width\n" + "\n".join(rows) + "\n")
    found = kinds(mipl.check(tmp_path / "x.csv"))
    assert ("numbers as text" in found) == (words is not None)
    if words is not None:
        assert words in found["numbers as text"].message


def test_a_report_in_a_notebook_is_what_it_prints(tmp_path: Path):
    report = mipl.check(write(tmp_path / "x.csv", CLEAN))
    assert repr(report) == str(report) == report.verdict


def test_of_several_files_all_that_cannot_be_read_are_told(tmp_path: Path):
    write(tmp_path / "a.csv", CLEAN)
    (tmp_path / "b.csv").write_text("")
    (tmp_path / "c.csv").write_text("bag_id,candidates,width,width\nx,owl,1,2\n")
    for source in (tmp_path, str(tmp_path / "*.csv"), [tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"]):
        first, second = mipl.check(source).problems
        assert "b.csv is empty" in first.message
        assert "c.csv has the column 'width' 2 times" in second.message
