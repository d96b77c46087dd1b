"""Parquet files are read by other programs, and theirs are read here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mipl
from mipl.errors import DataError


def test_plain_pandas_and_pyarrow_read_the_parquet_file(tmp_path):
    ds = mipl.load("digits", r=2)
    path = ds.save(tmp_path / "d.parquet")
    frame = pd.read_parquet(path)
    assert list(frame.columns) == ["bag_id", "instances", "candidates", "label", "instance_labels"]
    i = 17
    np.testing.assert_array_equal(np.stack(frame["instances"][i]), ds.bags[i])
    assert frame["candidates"][i].tolist() == ds.classes[ds.candidates[i]].tolist()
    assert frame["label"].tolist() == ds.classes[ds.labels].tolist()
    table = pq.read_table(path)
    assert table.num_rows == len(ds)
    assert str(table.schema.field("instances").type.value_type).startswith("fixed_size_list<")


def test_what_pandas_writes_without_our_metadata_is_a_data_set_too(tmp_path):
    ds = mipl.load("digits", r=2)
    frame = pd.read_parquet(ds.save(tmp_path / "d.parquet"))
    frame.drop(columns="instance_labels").to_parquet(tmp_path / "p.parquet")
    back = mipl.load(tmp_path / "p.parquet")
    assert back.bags.instances.tobytes() == ds.bags.instances.tobytes()
    assert np.array_equal(back.candidates, ds.candidates)
    assert back.bags.feature_names is None


def foreign(tmp_path, candidates: pa.Array) -> mipl.MIPLDataset:
    """A file of another tool: three bags of one instance, and this column of candidates."""
    instances = pa.array([[[1.0]], [[2.0]], [[3.0]]])
    ids = pa.array(["x", "y", "z"])
    pq.write_table(pa.table({"bag_id": ids, "instances": instances, "candidates": candidates}), tmp_path / "f.parquet")
    return mipl.load(tmp_path / "f.parquet")


@pytest.mark.parametrize(
    "candidates",
    [
        pa.array([[("owl", 3), ("wren", 1)], None, [("wren", 2)]], pa.map_(pa.string(), pa.int32())),
        pa.array([{"owl": 3.0, "wren": 1.0}, None, {"wren": 2.0}]),  # a struct, as pandas writes dictionaries
        pa.array(["owl:3|wren:1", None, "wren:2"]),
    ],
    ids=["map", "struct", "string"],
)
def test_votes_of_other_tools_are_read_and_null_means_all_classes(tmp_path, candidates):
    ds = foreign(tmp_path, candidates)
    assert ds.classes.tolist() == ["owl", "wren"]
    assert ds.candidate_weights.tolist() == [[3, 1], [0.5, 0.5], [0, 2]]


def test_a_null_among_lists_of_labels_means_all_classes(tmp_path):
    ds = foreign(tmp_path, pa.array([["owl"], None, ["wren"]]))
    assert ds.candidates.tolist() == [[True, False], [True, True], [False, True]]
    assert ds.candidate_weights is None


def test_weights_that_do_not_fit_their_candidates_name_the_row(tmp_path):
    columns = {"instances": [[[1.0]], [[2.0]]], "candidates": [["a", "b"], ["a"]], "weights": [[1.0, 2.0], [1.0, 2.0]]}
    pq.write_table(pa.table(columns), tmp_path / "w.parquet")
    with pytest.raises(DataError, match="row 1 does not have one weight for each candidate"):
        mipl.load(tmp_path / "w.parquet")


def test_every_page_has_a_checksum_that_is_compared(tmp_path):
    ds = mipl.load("digits")[:20]
    path = ds.save(tmp_path / "x.parquet")
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content[start.data_page_offset + start.total_compressed_size // 2] ^= 1
    path.write_bytes(bytes(content))
    for read in (mipl.load, lambda path: mipl.scan(path).to_dataset()):
        with pytest.raises(DataError, match=r"x\.parquet .*CRC"):
            read(path)
