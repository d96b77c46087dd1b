"""Numbers as other libraries hold them become bags, or are refused in our words."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import sparse

import mipl
from mipl import Bags, DataError, MIPLDataset
from mipl.arrays import as_array
from mipl.bags import as_bags
from mipl.pll import PLkNN

RNG = np.random.default_rng(0)
DENSE = [np.round(RNG.normal(size=(n, 4)) * (RNG.random((n, 4)) < 0.5), 2).astype(np.float32) for n in (3, 1, 5)]
EXPECTED = Bags.from_list(DENSE)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.lil_matrix])
def test_sparse_bags_are_the_dense_ones(kind: type):
    assert as_bags([kind(bag) for bag in DENSE]) == EXPECTED
    assert Bags.from_flat(kind(EXPECTED.instances), EXPECTED.bag_of_instance) == EXPECTED
    assert Bags(kind(EXPECTED.instances), EXPECTED.offsets) == EXPECTED


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: torch.tensor(x),
        lambda x: torch.tensor(x, requires_grad=True),
        lambda x: torch.tensor(x, requires_grad=True) * 1,  # inside a graph
        lambda x: torch.tensor(x).double(),
        lambda x: torch.tensor(x).to_sparse(),
        lambda x: torch.nn.Parameter(torch.tensor(x)),
        lambda x: torch.tensor(x.T.copy()).T,
    ],
    ids=["plain", "leaf", "graph", "double", "sparse", "parameter", "strided"],
)
def test_tensors_are_the_arrays_that_they_hold(turn):
    assert as_bags([turn(bag) for bag in DENSE]) == EXPECTED
    assert Bags.from_flat(turn(EXPECTED.instances), torch.tensor(EXPECTED.bag_of_instance)) == EXPECTED


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_short_floats_keep_their_values(dtype: torch.dtype):
    tensors = [torch.tensor(bag).to(dtype) for bag in DENSE]
    assert as_bags(tensors) == Bags.from_list([tensor.float().numpy() for tensor in tensors])


def test_a_stacked_tensor_is_read_as_an_array():
    array = RNG.normal(size=(6, 3, 4)).astype(np.float32)
    assert as_bags(torch.tensor(array)) == as_bags(array)
    names = [{"a"}, {"b"}] * 3
    by_tensor = mipl.make("PL-kNN", n_neighbors=2).fit(torch.tensor(array), names)
    assert by_tensor.predict(torch.tensor(array)).tolist() == by_tensor.predict(array).tolist()


def test_frames_as_bags_name_the_features_and_are_matched_by_name():
    names = ["a", "b", "c", "d"]
    frames = [pd.DataFrame(bag, columns=names) for bag in DENSE]
    frames[1] = frames[1][names[::-1]]
    bags = as_bags(frames)
    assert bags.feature_names == tuple(names)
    assert np.array_equal(bags.instances, EXPECTED.instances)
    assert as_bags([pa.Table.from_pandas(frame) for frame in frames]) == bags
    assert as_bags(pd.Series(DENSE)) == EXPECTED


def test_frames_of_many_kinds_of_numbers_are_read_column_by_column():
    kinds = {
        "whole": [1, 2, 3],
        "single": np.array([0.5, 1.5, 2.5], np.float32),
        "flag": [True, False, True],
        "nullable": pd.array([4, 5, 6], dtype="Int64"),
        "exact": [Decimal("0.25"), 7, 8.5],
        "grade": pd.Categorical([3, 1, 3]),
    }
    frame = pd.DataFrame(kinds)
    bags = as_bags([frame, frame[list(kinds)[::-1]]])
    assert bags.feature_names == tuple(kinds)
    expected = np.stack([np.array(list(values), dtype=float) for values in kinds.values()], axis=1)
    assert np.array_equal(bags[0], expected.astype(np.float32))
    assert np.array_equal(bags[1], bags[0])
    with pytest.raises(DataError, match="the column 'a' 2 times"):
        as_bags([pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])])


IDS = ["x", "y", "z"]


@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ([DENSE[0], torch.ones(2, 4, device="meta"), DENSE[2]], r"bag 'y' is a tensor on the device 'meta'"),
        ([DENSE[0], torch.ones(2, 4, dtype=torch.complex64), DENSE[2]], r"bag 'y' is of type complex64"),
        ([DENSE[0], DENSE[1], sparse.csr_matrix(np.eye(4) * 1j)], r"bag 'z' is of type complex128, not real numbers"),
        ([DENSE[0], DENSE[1], sparse.csr_matrix(DENSE[2] * np.nan)], r"bag 'z', instance 0, feature \d is nan"),
        ([DENSE[0], np.full((1, 4), np.inf), DENSE[2]], r"bag 'y', instance 0, feature \d is inf; replace"),
        ([DENSE[0], np.ones((2, 3)), DENSE[2]], r"bag 'y' has instances of shape \(3,\), bag 'x' of shape \(4,\)"),
        ([DENSE[0], [[1.0], [1.0, 2.0]], DENSE[2]], r"bag 'y' is ragged"),
        ([DENSE[0], np.ones((0, 4)), DENSE[2]], r"bag 'y' is empty"),
        ([DENSE[0], pd.DataFrame(DENSE[1]), DENSE[2]], r"bag 'x' is a ndarray, others are frames"),
        (
            [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}), pd.DataFrame({"a": [1.0]})],
            r"bag 'y' and bag 'x' have different columns: 'a' is in one only",
        ),
        (
            [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": ["?"]}), pd.DataFrame({"a": [1.0]})],
            r"bag 'y': column 'a' is not numeric",
        ),
        # NumPy, as Python, takes the text '1_2' for 12.
        (
            [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": ["1_2"]}), pd.DataFrame({"a": [1.0]})],
            r"bag 'y': column 'a' is not numeric .*'1_2' is text",
        ),
    ],
    ids=lambda value: None if isinstance(value, list) else value[:30],
)
def test_what_cannot_be_read_is_refused_by_the_bags_id(bags: list, message: str):
    with pytest.raises(DataError, match=message):
        MIPLDataset(bags, [{"a"}, {"b"}, {"a"}], bag_ids=IDS)


def test_a_sparse_matrix_that_is_too_large_to_be_dense_is_refused_with_a_way_out():
    with pytest.raises(
        DataError, match=r"bag 0 is a sparse matrix \(100000, 50000\), which takes 19 GiB .*TruncatedSVD"
    ):
        as_bags([sparse.csr_matrix((100_000, 50_000))])


@pytest.mark.parametrize("table", [pd.DataFrame({"x": [1]}), sparse.csr_matrix(np.eye(3))], ids=["frame", "sparse"])
def test_one_table_is_not_a_list_of_bags(table: object):
    with pytest.raises(DataError, match=r"cannot read bags from .*see Bags.from_flat and Bags.from_frame for tables"):
        as_bags(table)


def test_what_numpy_cannot_read_is_a_data_error():
    class Stubborn:
        def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
            raise TypeError("no")

    with pytest.raises(DataError, match=r"bag 3 is a Stubborn that NumPy cannot read \(no\); convert it"):
        as_array(Stubborn(), "bag 3")


MASK = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1]], dtype=bool)


@pytest.mark.parametrize(
    "turn",
    [
        torch.tensor,
        lambda mask: torch.tensor(mask * 1.0, requires_grad=True),
        sparse.csr_matrix,
        sparse.coo_array,
        lambda mask: [torch.tensor(np.flatnonzero(row)) for row in mask],
        lambda mask: pd.DataFrame(mask),
    ],
    ids=["bool tensor", "float tensor", "matrix", "array", "tensors of labels", "frame"],
)
def test_candidates_may_come_from_other_libraries(turn):
    ds = MIPLDataset(DENSE, turn(MASK))
    assert np.array_equal(ds.candidates, MASK)
    assert ds.candidate_weights is None
    votes = MIPLDataset(DENSE, sparse.csr_matrix(3 * MASK))
    assert np.array_equal(votes.candidate_weights, 3.0 * MASK)


def test_the_columns_of_a_frame_of_candidates_are_the_classes():
    frame = pd.DataFrame(MASK, columns=["wren", "owl", "crow"])
    ds = MIPLDataset(DENSE, frame)
    assert ds.candidate_sets() == [["wren", "owl"], ["owl"], ["owl", "crow"]]
    turned = MIPLDataset(DENSE, frame[["crow", "wren", "owl"]], classes=["wren", "owl", "crow", "tit"])
    assert [sorted(names) for names in turned.candidate_sets()] == [sorted(names) for names in ds.candidate_sets()]
    assert turned.classes.tolist() == ["wren", "owl", "crow", "tit"]
    with pytest.raises(DataError, match=r"the column 'crow', which is not among the classes .*frame.to_numpy\(\)"):
        MIPLDataset(DENSE, frame, classes=["wren", "owl", "jay"])
    assert MIPLDataset(DENSE, frame.to_numpy(), classes=["wren", "owl", "jay"]).n_classes == 3


def test_labels_may_be_a_tensor():
    ds = MIPLDataset(DENSE, MASK, labels=torch.tensor([0, 1, 2]))
    assert ds.labels.tolist() == [0, 1, 2]
    model = mipl.make("PL-kNN", n_neighbors=1).fit(ds)
    assert model.score(DENSE, torch.tensor([0, 1, 2])) == model.score(DENSE, [0, 1, 2])


def test_learners_on_plain_samples_take_sparse_matrices_and_tensors():
    rows = EXPECTED.instances
    sets = [["a"], ["b"], ["a", "b"]] * 3
    expected = PLkNN(n_neighbors=2).fit(rows, sets).predict_proba(rows)
    for turned in (sparse.csr_matrix(rows), torch.tensor(rows, requires_grad=True)):
        assert np.array_equal(PLkNN(n_neighbors=2).fit(turned, sets).predict_proba(turned), expected)


def test_masked_entries_are_no_numbers():
    masked = np.ma.masked_array(DENSE[0], DENSE[0] > 0)
    with pytest.raises(DataError, match="bag 1 has masked entries"):
        Bags.from_list([DENSE[1], masked])
    with pytest.raises(DataError, match="masked entries"):
        MIPLDataset(EXPECTED, np.ma.masked_array(np.ones((3, 2)), np.eye(3, 2)))
    assert Bags.from_list([np.ma.masked_array(bag, False) for bag in DENSE]) == EXPECTED
