"""Long tables of other programs: embeddings in lists, images, and class numbers with names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import mipl
from mipl.errors import DataError


def embeddings(n: int = 8, d: int = 4) -> tuple[np.ndarray, pa.Table]:
    values = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    table = pa.table(
        {
            "bag_id": [f"img{i // 2}" for i in range(n)],
            "embedding": list(values),
            "candidates": [["cat", "dog"] if i // 2 % 2 else ["dog"] for i in range(n)],
            "label": ["dog"] * n,
            "score": np.arange(n) * 0.5,
        }
    )
    return values, table


def test_a_column_of_embeddings_is_the_features(tmp_path: Path):
    values, table = embeddings()
    pq.write_table(table, tmp_path / "x.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "x.feather")
    with pa.ipc.new_stream(tmp_path / "x.arrow", table.schema) as stream:  # as `datasets` saves to disk
        stream.write_table(table)
    for suffix in (".parquet", ".feather", ".arrow"):
        ds = mipl.load(tmp_path / f"x{suffix}")
        assert np.array_equal(ds.bags.instances, values)
        assert ds.bag_ids.tolist() == ["img0", "img1", "img2", "img3"]
        assert ds.label_names() == ["dog"] * 4


def test_two_columns_of_lists_need_a_choice(tmp_path: Path):
    values, table = embeddings()
    pq.write_table(table.append_column("other", pa.array(list(-values))), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="2 columns of lists: 'embedding', 'other'; say which"):
        mipl.load(tmp_path / "x.parquet")
    assert np.array_equal(mipl.load(tmp_path / "x.parquet", features="other").bags.instances, -values)


def test_embeddings_of_different_lengths_name_the_row(tmp_path: Path):
    table = pa.table({"bag_id": [1, 1], "e": [[1.0, 2.0], [1.0]], "candidates": ["a|b", "a|b"]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match="row 1, column 'e' has 1 values, the first has 2"):
        mipl.load(tmp_path / "x.parquet")


def test_one_image_per_row_keeps_its_shape(tmp_path: Path):
    pixels = np.random.default_rng(0).random((6, 3, 2))
    table = pa.table({"bag_id": [0, 0, 0, 1, 1, 1], "image": pixels.tolist(), "candidates": ["a|b"] * 3 + ["a"] * 3})
    pq.write_table(table, tmp_path / "x.parquet")
    ds = mipl.load(tmp_path / "x.parquet")
    assert ds.bags.instance_shape == (3, 2)
    np.testing.assert_allclose(ds.bags.instances.reshape(6, 3, 2), pixels, rtol=1e-6)


def test_nested_images_and_records_are_read(tmp_path: Path):
    pixels = np.random.default_rng(0).random((2, 3, 3, 2))
    pq.write_table(pa.table({"instances": pixels.tolist(), "candidates": [["a", "b"], ["a"]]}), tmp_path / "i.parquet")
    assert mipl.load(tmp_path / "i.parquet").bags.instance_shape == (3, 2)
    lines = [
        {"bag_id": "p", "instances": [{"w": 1, "h": 2.5}, {"w": 3, "h": 4}], "candidates": ["a", "b"]},
        {"bag_id": "q", "instances": [{"w": 5, "h": 6}], "candidates": ["a"], "label": "a"},
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ds = mipl.load(tmp_path / "r.jsonl")
    assert ds.bags.feature_names == ("w", "h")
    assert [bag.tolist() for bag in ds.bags] == [[[1, 2.5], [3, 4]], [[5, 6]]]
    assert ds.label_names() == [None, "a"]


def test_class_numbers_of_hugging_face_become_their_names(tmp_path: Path):
    names = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    info = {"info": {"features": {"label": names, "candidates": {"feature": names, "_type": "Sequence"}}}}
    table = pa.table({"bag_id": [1, 2], "e": [[1.0], [2.0]], "candidates": [[0, 1], [1]], "label": [0, 1]})
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(info)}), tmp_path / "x.parquet")
    ds = mipl.load(tmp_path / "x.parquet")
    assert ds.classes.tolist() == ["cat", "dog"]
    assert ds.label_names() == ["cat", "dog"]


def test_names_of_groups_are_groups(tmp_path: Path):
    (tmp_path / "x.csv").write_text("bag_id,candidates,group,w\n1,a|b,north,1\n2,a,south,2\n3,b,north,3\n")
    assert mipl.load(tmp_path / "x.csv").groups.tolist() == [0, 1, 0]
    # The names of a second file are others, or the same.
    (tmp_path / "y.csv").write_text("bag_id,candidates,group,w\n4,a|b,1_2,1\n5,a,south,2\n")
    assert mipl.load([tmp_path / "x.csv", tmp_path / "y.csv"]).groups.tolist() == [1, 2, 1, 0, 2]
    bags = {"instances": [[[1.0]], [[2.0]]], "candidates": [["a", "b"], ["a"]]}
    pq.write_table(pa.table({**bags, "group": ["north", "south"]}), tmp_path / "x.parquet")
    assert mipl.load(tmp_path / "x.parquet").groups.tolist() == [0, 1]
    pq.write_table(pa.table({"bag_id": ["p", "q"], **bags, "group": ["north", None]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="bag 'q' has no group"):
        mipl.load(tmp_path / "x.parquet")
