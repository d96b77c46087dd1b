"""Parquet files are read by other programs, and theirs are read here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import mipl


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
