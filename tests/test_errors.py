"""Bad input: every case ends in an error of mipl that says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

import mipl
from mipl.bags import Bags, as_bags
from mipl.dataset import MIPLDataset

GOOD = [np.ones((2, 3)), np.ones((1, 3))]
SETS = [{"a", "b"}, {"b"}]


def with_value(value: float) -> list[np.ndarray]:
    bag = np.ones((4, 3))
    bag[2, 1] = value
    return [np.ones((2, 3)), bag]


Cases = dict[str, tuple[Callable[[], object], str]]

DATA: Cases = {
    "empty bag": (lambda: Bags.from_list([np.ones((2, 3)), np.ones((0, 3))]), r"bag 1 is empty; drop it"),
    "empty bag by offsets": (lambda: Bags(np.ones((2, 3)), [0, 2, 2]), r"bag 1 is empty; drop it"),
    "empty data set": (lambda: Bags.from_list([]), r"no bags: the list is empty; pass at least one"),
    "empty table": (lambda: Bags.from_flat(np.ones((0, 3)), []), r"no instances"),
    "no features": (lambda: Bags.from_list([np.ones((2, 0))]), r"bag 0 has no features"),
    "NaN": (lambda: Bags.from_list(with_value(np.nan)), r"bag 1, instance 2, feature 1 is nan; replace"),
    "NaN in a named feature": (
        lambda: Bags.from_list(with_value(np.nan), feature_names=["a", "b", "c"]),
        r"bag 1, instance 2, feature 'b' is nan; replace",
    ),
    "infinity": (lambda: Bags.from_list(with_value(-np.inf)), r"bag 1, instance 2, feature 1 is -inf; replace"),
    "beyond float32": (lambda: Bags.from_list(with_value(1e300)), r"feature 1 is inf; .*overflow float32"),
    "other width": (lambda: Bags.from_list([np.ones((2, 3)), np.ones((2, 4))]), r"bag 1 has instances of shape \(4,\)"),
    "flat bag": (lambda: Bags.from_list([np.ones(3)]), r"bag 0 has shape \(3,\); a bag is a 2-D array"),
    "ragged bag": (lambda: Bags.from_list([[[1.0], [1.0, 2.0]]]), r"bag 0 is ragged"),
    "ragged 3-D input": (lambda: Bags.from_array([[[1.0]], [[1.0], [2.0]]]), r"different numbers .* Bags.from_list"),
    "object 3-D input": (
        lambda: Bags.from_array(np.array([[1], [2, 3]], dtype=object)),
        r"ragged or holds Python objects; use Bags.from_list",
    ),
    "two dimensions": (lambda: as_bags(np.ones((3, 4))), r"expected a 3-D array .* got 2 dimensions"),
    "object bag": (lambda: Bags.from_list([np.array([[None]])]), r"bag 0 holds Python objects, not numbers; convert"),
    "object instances": (lambda: Bags.from_flat(np.array([[None]]), [0]), r"hold Python objects, not numbers"),
    "text bag": (lambda: Bags.from_list([np.array([["x"]])]), r"bag 0 is of type <U1, not real numbers"),
    "complex bag": (lambda: Bags.from_list([np.ones((1, 1), complex)]), r"bag 0 is of type complex128"),
    "not bags at all": (lambda: as_bags("bags"), r"cannot read bags from str; pass a Bags"),
    "bag ids too few": (lambda: Bags.from_flat(np.ones((3, 2)), [1, 2]), r"expected one bag id per row \(3\)"),
    "bag id missing": (lambda: Bags.from_flat(np.ones((2, 2)), [1.0, np.nan]), r"row 1 has no bag id"),
    "bag id None": (lambda: Bags.from_flat(np.ones((2, 2)), np.array(["a", None])), r"row 1 has no bag id"),
    "image shape": (lambda: Bags(np.ones((2, 6)), [0, 2], (2, 2)), r"\(2, 2\) has 4 entries, the instances have 6"),
    "index out of bags": (lambda: Bags.from_list(GOOD)[[]], r"the selection is empty"),
    "mask of other length": (lambda: Bags.from_list(GOOD)[[True]], r"the mask has 1 entries for 2 bags"),
    "values of other length": (lambda: Bags.from_list(GOOD).max(np.ones(9)), r"expected one value per instance \(3\)"),
    "frame without bag column": (lambda: Bags.from_frame(pd.DataFrame({"x": [1]})), r"no column 'bag_id'"),
    "frame with text": (
        lambda: Bags.from_frame(pd.DataFrame({"bag_id": [1], "x": ["?"]})),
        r"column 'x' is not numeric .*; drop it",
    ),
    "frame with a gap": (
        lambda: Bags.from_frame(pd.DataFrame({"bag_id": [1, 1], "x": [1.0, None]})),
        r"column 'x', row 1 is missing",
    ),
    "no candidate": (lambda: MIPLDataset(GOOD, [{"a", "b"}, set()]), r"bag 1 has no candidate label; give it"),
    "no candidate in mask": (lambda: MIPLDataset(GOOD, np.eye(2)[[0, 0]] * 0), r"bag 0 has no candidate label"),
    "negative weight": (
        lambda: MIPLDataset(GOOD, np.array([[1, -2], [0, 1]])),
        r"bag 0, class 1: the weight -2 is not a finite number from 0 up; 0 says that the class is not a candidate",
    ),
    "missing weight": (lambda: MIPLDataset(GOOD, np.array([[1, 2], [np.nan, 1]])), r"bag 1, class 0: the weight nan"),
    "infinite weight": (lambda: MIPLDataset(GOOD, [{"a": np.inf}, {"b": 1}]), r"bag 0: the weight inf of .* 'a'"),
    "weight that is text": (lambda: MIPLDataset(GOOD, [{"a": "3"}, {"b": 1}]), r"bag 0: the weight '3' of .* 'a'"),
    "only zero weights": (lambda: MIPLDataset(GOOD, [{"a": 3}, {"b": 0}]), r"bag 1 has no candidate label; give it"),
    "two weights": (lambda: MIPLDataset(GOOD, ["a:1|b:2", "a:1|a:2"]), r"bag 1: 'a:1\|a:2' gives a label two weights"),
    "unknown background": (
        lambda: MIPLDataset(GOOD, SETS, background="wind"),
        r"the background class 'wind' is not among the classes \['a', 'b'\]",
    ),
    "weights of other shape": (
        lambda: MIPLDataset(GOOD, SETS, candidate_weights=np.ones((2, 3))),
        r"candidate_weights must be numbers of shape \(2, 2\)",
    ),
    "too few candidate sets": (lambda: MIPLDataset(GOOD, SETS[:1] * 3), r"3 candidate sets for 2 bags"),
    "unknown class name": (
        lambda: MIPLDataset(GOOD, SETS, classes=["a", "c"]),
        r"bag 0 has the candidate 'b', which is not among the classes \['a', 'c'\]",
    ),
    "unknown label": (lambda: MIPLDataset(GOOD, SETS, labels=["a", "z"]), r"bag 1 has the label 'z'"),
    "too many labels": (lambda: MIPLDataset(GOOD, SETS, labels=["a", "b", "b"]), r"3 labels for 2 bags"),
    "class twice": (lambda: MIPLDataset(GOOD, np.eye(2), classes=["a", "a"]), r"class name 'a' occurs twice"),
    "mixed labels": (lambda: MIPLDataset(GOOD, [{"a", 1}, {1}]), r"labels mix integers and strings"),
    "label of other type": (lambda: MIPLDataset(GOOD, [[0.5], [1]]), r"bag 0: the label 0.5 is neither an integer"),
    "empty name": (lambda: MIPLDataset(GOOD, pd.Series(["a|", "b"])), r"bag 0: .*'a\|' has an empty label"),
    "single class": (lambda: MIPLDataset(GOOD, [{"a"}, {"a"}]), r"only one class .*pass all class names"),
    "duplicate bag ids": (lambda: MIPLDataset(GOOD, SETS, bag_ids=["x", "x"]), r"bag id 'x' occurs 2 times"),
    "instance label out of range": (
        lambda: MIPLDataset(GOOD, SETS, instance_labels=[0, 1, 9]),
        r"bag 1, instance 0 has the instance label 9; use 0..1 for a class, 2 for negative",
    ),
    "bag ids too many": (lambda: MIPLDataset(GOOD, SETS, bag_ids=[1, 2, 3]), r"3 bag ids for 2 bags; .* one per bag"),
    "candidate by id": (
        lambda: MIPLDataset(GOOD, SETS, classes=["a", "c"], bag_ids=["x", "y"]),
        r"bag 'x' has the candidate 'b'",
    ),
    "no candidate by id": (
        lambda: MIPLDataset(GOOD, [{"a", "b"}, set()], bag_ids=[7, 9]),
        r"bag 9 has no candidate label",
    ),
    "negative weight by id": (
        lambda: MIPLDataset(GOOD, np.array([[1, 2], [0, -1]]), bag_ids=["x", "y"]),
        r"bag 'y', class 1: the weight -1",
    ),
    "weight outside candidates by id": (
        lambda: MIPLDataset(GOOD, SETS, candidate_weights=np.ones((2, 2)), bag_ids=["x", "y"]),
        r"bag 'y', class 0 has the weight 1 and is no candidate; make them agree",
    ),
    "negative weight in a string by id": (
        lambda: MIPLDataset(GOOD, ["a:1|b:2", "a:-1|b:1"], bag_ids=["x", "y"]),
        r"bag 'y': the weight -1 of the candidate 'a' is not a finite number from 0 up",
    ),
    "unknown label by id": (
        lambda: MIPLDataset(GOOD, SETS, labels=["a", "z"], bag_ids=["x", "y"]),
        r"bag 'y' has the label 'z'",
    ),
    "too many labels of which one is unknown": (
        lambda: MIPLDataset(GOOD, SETS, labels=["a", "b", "z"], bag_ids=["x", "y"]),
        r"3 labels for 2 bags; there must be one per bag",
    ),
    "instance label by id": (
        lambda: MIPLDataset(GOOD, SETS, instance_labels=[0, 1, 9], bag_ids=["x", "y"]),
        r"bag 'y', instance 0 has the instance label 9",
    ),
    "labels that are one": (lambda: MIPLDataset(GOOD, SETS, labels="a"), r"cannot read labels from 'a'; pass one"),
    "labels that are lists": (lambda: MIPLDataset(GOOD, SETS, labels=[["a"], ["b"]]), r"bag 0 has the label \['a'\]"),
    "classes that are one": (lambda: MIPLDataset(GOOD, SETS, classes="ab"), r"classes must be a sequence of labels"),
    "class of other type": (lambda: MIPLDataset(GOOD, np.eye(2), classes=[0.5, 1]), r"the class name 0.5 is neither"),
    "feature names too few": (
        lambda: Bags.from_list(GOOD, feature_names=["a", "b"]),
        r"2 feature names for 3 features; there must be one per feature",
    ),
    "feature name twice": (
        lambda: Bags.from_list(GOOD, feature_names=["a", "b", "a"]),
        r"the feature name 'a' occurs 2 times; feature names must differ",
    ),
    "feature name of other type": (
        lambda: Bags.from_list(GOOD, feature_names=["a", 1, "b"]),
        r"feature 1 has the name 1; feature names are strings",
    ),
    "selection by name without names": (
        lambda: Bags.from_list(GOOD).select_features(["a"]),
        r"no feature names to select by; pass feature_names",
    ),
    "selection of an unknown feature": (
        lambda: Bags.from_list(GOOD, feature_names=["a", "b", "c"]).select_features(["b", "z"]),
        r"the bags have no feature 'z'; their features are 'a', 'b', 'c'",
    ),
    "frame with a column twice": (
        lambda: Bags.from_frame(pd.DataFrame([[1, 2, 3]], columns=["bag_id", "x", "x"])),
        r"the frame has the column 'x' 2 times; rename or drop one",
    ),
    "frame without candidates": (
        lambda: MIPLDataset.from_frame(pd.DataFrame({"bag_id": [1], "x": [1.0]})),
        r"no column 'candidates'; its columns are \['bag_id', 'x'\]",
    ),
    "frame with an empty candidate set": (
        lambda: MIPLDataset.from_frame(pd.DataFrame({"bag_id": ["x", "y"], "candidates": ["a|b", ""], "f": [1, 2]})),
        r"bag 'y' has no candidate label",
    ),
}

PARAMETERS: Cases = {
    "split that leaves nothing": (
        lambda: MIPLDataset(GOOD, SETS).split(2),
        r"train_size=2 leaves 2 training bags of 2",
    ),
    "split by nothing": (lambda: MIPLDataset(GOOD, SETS).split(float("nan")), r"train_size=nan; pass a share"),
    "split by a word": (lambda: MIPLDataset(GOOD, SETS).split("half"), r"train_size='half'; pass a share in \(0, 1\)"),
    "split by a negative seed": (lambda: MIPLDataset(GOOD, SETS).split(1, seed=-1), r"seed=-1; a split takes an int"),
    "split without a seed": (lambda: MIPLDataset(GOOD, SETS).split(1, seed=None), r"seed=None; a split takes an int"),
    "stratify without labels": (lambda: MIPLDataset(GOOD, SETS).split(1, stratify=True), r"needs the true label"),
    "stratify with groups": (
        lambda: MIPLDataset(GOOD, SETS, groups=[0, 1]).split(1, stratify=True),
        r"is split by group; stratify=True cannot be had as well",
    ),
}

#: Names of data sets, methods, options and files.
NAMES: Cases = {
    "unknown data set": (lambda: mipl.load("mnits"), r"'mnits' is neither a data set \(digits, .*nor a file"),
    "missing file": (lambda: mipl.load("nowhere/x.parquet"), r"no such file: nowhere"),
    "wrong suffix to save": (lambda: MIPLDataset(GOOD, SETS).save("x.xlsx"), r"its suffix must be one of .parquet"),
    "missing folder to save": (lambda: MIPLDataset(GOOD, SETS).save("nowhere/x.csv"), r"folder nowhere does not exist"),
    "CSV cannot hold a name": (
        lambda: MIPLDataset(GOOD, [["a|b", "c"], ["c"]]).save("x.csv"),
        r"class name 'a\|b' cannot be written as CSV; rename it or save as .parquet",
    ),
    "options for a file": (lambda: mipl.load("x.parquet", r=2), r"files have no option 'r'"),
    "unknown method": (lambda: mipl.make("PL-SVM"), r"unknown method 'PL-SVM'; the methods are "),
    "unknown parameter": (lambda: mipl.make("PL-kNN", n=3), r"PL-kNN has no parameter 'n'; it has .*embed"),
    "unknown option": (lambda: mipl.load("digits", n=2), r"digits has no option 'n'; it has r, seed"),
    "r out of range": (lambda: mipl.load("digits", r=5), r"r=5; with 5 classes a bag can have 0 to 4"),
}


@pytest.mark.parametrize(("call", "message"), DATA.values(), ids=DATA)
def test_bad_data_are_named(call, message):
    with pytest.raises(mipl.DataError, match=message):
        call()


@pytest.mark.parametrize(("call", "message"), PARAMETERS.values(), ids=PARAMETERS)
def test_wrong_parameters_are_named(call, message):
    with pytest.raises(mipl.ParameterError, match=message):
        call()


@pytest.mark.parametrize(("call", "message"), NAMES.values(), ids=NAMES)
def test_unknown_names_are_answered_with_the_known_ones(call, message):
    with pytest.raises(mipl.MIPLError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)


def test_one_clause_catches_every_error_and_scikit_learns_catches_wrong_values():
    assert all(issubclass(e, mipl.MIPLError) for e in (mipl.DataError, mipl.ParameterError, mipl.UnavailableError))
    assert issubclass(mipl.DataError, ValueError)
    assert issubclass(mipl.ParameterError, ValueError)
    assert not issubclass(mipl.UnavailableError, ValueError)


FILES: dict[str, tuple[str, object, str]] = {
    "no suffix": ("data", b"", r"cannot tell the format of .*data; its suffix must be one of"),
    "wrong suffix": ("x.txt", b"", r"is empty; its first line must name the columns"),
    "not Parquet": ("x.parquet", b"PAR1nonsense", r"x.parquet is damaged or not a Parquet file"),
    "not npz": ("x.npz", b"nonsense", r"x.npz is damaged or not an .npz file"),
    "not MATLAB": ("x.mat", b"nonsense" * 30, r"x.mat is damaged or not a MATLAB file"),
    "npz without arrays": ("x.npz", {"instances": np.ones((1, 1))}, r"has no array 'offsets'; it has \['instances'\]"),
    "mat without data": ("x.mat", {"X": np.ones(3)}, r"has no variable 'data'; it has \['X'\]"),
    "mat that is a split": ("x.mat", {"trainIndex": [1], "testIndex": [2]}, r"it is a split"),
    "mat without cells": (
        "x.mat",
        {"data": np.ones((2, 2))},
        r"'data' is no cell matrix; it must have one row per bag",
    ),
    "Parquet without columns": ("x.parquet", {"bag_id": [1]}, r"no feature columns beside \['bag_id'\]"),
    "Parquet ragged": (
        "x.parquet",
        {"instances": [[[1.0, 2.0]], [[1.0, 2.0], [3.0]]], "candidates": [["a"], ["b"]]},
        r"bag 1, instance 1 has 1 values, the first has 2",
    ),
    "Parquet flat": (
        "x.parquet",
        {"instances": [[1.0], [2.0]], "candidates": [["a"], ["b"]]},
        r"no column 'bag_id'; its columns are 'instances', 'candidates'; say which it is with bag=NAME",
    ),
    "Parquet text": ("x.parquet", {"instances": [[["x"]]], "candidates": [["a"]]}, r"of type string, not numbers"),
    "Parquet null": (
        "x.parquet",
        {"instances": [[[1.0]], None], "candidates": [["a"]] * 2},
        r"bag 1 has no instances; leave it out",
    ),
    "Parquet duplicate ids": (
        "x.parquet",
        {"bag_id": [4, 4], "instances": [[[1.0]], [[2.0]]], "candidates": [["a"], ["b"]]},
        r"bag id 4 occurs 2 times",
    ),
    "CSV empty": ("x.csv", b"", r"is empty; its first line must name the columns"),
    "CSV without rows": ("x.csv", b"bag_id,candidates,f\n", r"has no rows"),
    "CSV without bag column": ("x.csv", b"id,candidates,f\n1,a,2\n", r"no column 'bag_id'; its columns are 'id'"),
    "CSV without features": ("x.csv", b"bag_id,candidates\n1,a\n", r"has no feature columns"),
    "CSV double column": ("x.csv", b"bag_id,candidates,f,f\n1,a,1,2\n", r"has the column 'f' 2 times"),
    "CSV text": (
        "x.csv",
        b"bag_id,candidates,f\n1,a,2\n1,a,two\n",
        r"line 3, bag 1, instance 1, column 'f': 'two' is not a number",
    ),
    "CSV gap": (
        "x.csv",
        b"bag_id,candidates,f\n1,a,2\n1,a,\n",
        r"line 3, bag 1, instance 1, column 'f': the value is missing; fill it",
    ),
    "CSV infinite": (
        "x.csv",
        b"bag_id,candidates,f\n1,a,2\n1,a,inf\n",
        r"line 3, bag 1, instance 1, column 'f': the value is inf; replace",
    ),
    "CSV short row": ("x.csv", b"bag_id,candidates,f\n1,a\n", r"line 2 has 2 cells where there are 3 columns: '1,a'"),
    "CSV disagreement": (
        "x.csv",
        b"bag_id,candidates,f\n1,a|b,2\n2,b,1\n1,a,3\n",
        r"line 4: column 'candidates' is 'a', but 'a\|b' in an earlier row of bag 1; all rows",
    ),
}


@pytest.mark.parametrize(("name", "content", "message"), FILES.values(), ids=FILES)
def test_a_bad_file_is_named(tmp_path: Path, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".mat":
        savemat(path, content)
    else:
        pq.write_table(pa.table(content), path)
    with pytest.raises(mipl.DataError, match=message):
        mipl.load(path)
