"""Bag ids: exactly as they were given, through memory and through Parquet, or an error that names the one at fault."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mipl
from mipl.bag_ids import as_bag_ids
from mipl.errors import DataError

BIG = 2**64 - 1


def table(ids: pa.Array, nested: bool) -> pa.Table:
    """Bags of one instance each: a row is a bag, or a row is an instance."""
    m = len(ids)
    columns = {"bag_id": ids, "candidates": pa.array([["a", "b"], *[["a"]] * (m - 1)])}
    rows = [[[float(i), 1.0]] for i in range(m)]
    return pa.table({**columns, "instances": rows} if nested else {**columns, "width": [row[0][0] for row in rows]})


@pytest.mark.parametrize("nested", [True, False], ids=["a row per bag", "a row per instance"])
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1, BIG], pa.uint64()), ["1", str(BIG)]),
        (pa.array([1, 2**63 - 1], pa.uint64()), [1, 2**63 - 1]),
        (pa.array([2**53 + 1, -(2**63)]), [2**53 + 1, -(2**63)]),
        (pa.array([2.0, 1.0]), [2, 1]),
        (pa.array(["007", "7"]), ["007", "7"]),
        (pa.array(["2", "1"]), ["2", "1"]),
        (pa.array(["a", "a ", " a"]), ["a", "a ", " a"]),
        (pa.array([10**20, 5], pa.decimal128(30)), [str(10**20), "5"]),
    ],
    ids=str,
)
def test_ids_of_a_parquet_file_are_exact(tmp_path: Path, nested: bool, ids: pa.Array, expected: list):
    pq.write_table(table(ids, nested), tmp_path / "x.parquet")
    found = mipl.load(tmp_path / "x.parquet")
    assert found.bag_ids.tolist() == expected
    again = mipl.load(found.save(tmp_path / "y.parquet"))
    assert again.bag_ids.tolist() == expected
    if not pa.types.is_floating(ids.type) and not pa.types.is_decimal(ids.type):
        assert mipl.scan(tmp_path / "x.parquet").bag_ids.tolist() == expected


@pytest.mark.parametrize("nested", [True, False], ids=["a row per bag", "a row per instance"])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (pa.array([None, 2**53 + 1]), "no bag"),
        (pa.array([None, "a"]), "no bag"),
        (pa.array([b"\xff", b"a"]), "the bag ids are of type binary"),
        (pa.array([2.0**53, 1.0]), r"9007199254740992\.0 is a float"),
        (pa.array([True, False]), "the bag ids are of type bool"),
        (pa.array(["a\0", "a"]), "ends in a zero character"),
        (pa.array([[1], [2]]), "bag"),
    ],
    ids=str,
)
def test_ids_that_cannot_be_kept_are_named(tmp_path: Path, nested: bool, ids: pa.Array, message: str):
    pq.write_table(table(ids, nested), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=message):
        mipl.load(tmp_path / "x.parquet")


@pytest.mark.parametrize("ids", [[2**53 + 1, 5], [BIG, 5], [10**30, -1], ["a", " a"]], ids=str)
def test_ids_of_json_lines_are_exact(tmp_path: Path, ids: list):
    rows = [{"bag_id": each, "instances": [[1.0]], "candidates": ["a", "b"]} for each in ids]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert mipl.load(path).bag_ids.tolist() == as_bag_ids(ids).tolist()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([BIG, -1], [str(BIG), "-1"]),
        (np.array([BIG], dtype=np.uint64), [str(BIG)]),
        ([2**53 + 1], [2**53 + 1]),
        (np.array([1.0, 2.0]), [1, 2]),
        (np.array([1.0, 2.5]), ["1.0", "2.5"]),
        ([np.str_("a"), "b"], ["a", "b"]),
    ],
    ids=str,
)
def test_ids_in_memory_are_exact(ids, expected):
    assert as_bag_ids(ids).tolist() == expected


@pytest.mark.parametrize("ids", [[1, "a"], [None, "a"], [b"a", b"b"], [float("nan"), 1.0], [(1,), (2,)]], ids=str)
def test_ids_in_memory_that_cannot_be_kept_are_refused(ids):
    with pytest.raises(DataError, match="bag"):
        as_bag_ids(ids)
    with pytest.raises(DataError, match="bag"):
        mipl.MIPLDataset([np.ones((1, 2))] * 2, [["a", "b"], ["a"]], bag_ids=ids)
