"""Chunks put together are the file, whatever their size."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import same_folder

import mipl
from mipl.errors import DataError
from mipl.io.options import Columns
from mipl.scanning.chunks import is_large, read_chunks


def long(sizes: list[int]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = sum(sizes)
    return pd.DataFrame(
        {
            "bag_id": np.repeat([f"b{i}" for i in range(len(sizes))], sizes),
            "candidates": "x|y",
            "width": rng.normal(size=n).astype(np.float32),
            "n": rng.integers(0, 9, n),
        }
    )


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9), rows=st.integers(1, 12))
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
@same_folder
def test_chunks_of_a_long_table_are_its_bags_in_order(tmp_path: Path, suffix, sizes, rows):
    data = long(sizes)
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        data.to_csv(path, index=False)
    elif suffix == ".parquet":
        data.to_parquet(path, row_group_size=max(1, rows - 1))
    else:
        data.to_json(path, orient="records", lines=True, double_precision=15)
    parts = [part.dataset for part in read_chunks([path], instances=rows)]
    assert [name for part in parts for name in part.bag_ids.tolist()] == [f"b{i}" for i in range(len(sizes))]
    assert [k for part in parts for k in part.bags.sizes.tolist()] == sizes
    np.testing.assert_allclose(
        np.concatenate([part.bags.instances for part in parts]), data[["width", "n"]].astype(float), rtol=1e-6
    )


@pytest.mark.parametrize("rows", [1, 7, 150, 1000])
def test_chunks_of_the_own_format_are_its_bags(tmp_path: Path, rows: int):
    ds = mipl.load("digits")
    parts = [part.dataset for part in read_chunks([ds.save(tmp_path / "x.parquet")], instances=rows)]
    assert max(map(len, parts)) <= rows
    assert mipl.Bags.concatenate([part.bags for part in parts]) == ds.bags
    assert np.array_equal(np.concatenate([part.candidates for part in parts]), ds.candidates)


def test_a_bag_that_comes_again_and_a_mean_are_refused(tmp_path: Path):
    (tmp_path / "x.csv").write_text("bag_id,candidates,w\na,x|y,1\nb,x,2\nc,y,4\na,x|y,3\n")
    with pytest.raises(DataError, match=r"the bag 'a' of .* comes again .* sort them by the bag"):
        list(read_chunks([tmp_path / "x.csv"], unlabelled=["x", "y"], instances=2))
    with pytest.raises(DataError, match="needs all rows at once"):
        list(read_chunks([tmp_path / "x.csv"], Columns(missing="mean")))


def test_memory_is_that_of_a_chunk_and_not_of_the_file(tmp_path: Path):
    ds = mipl.load("digits")
    big = mipl.MIPLDataset(mipl.Bags.concatenate([ds.bags] * 40), np.tile(ds.candidates, (40, 1)), classes=ds.classes)
    path = big.save(tmp_path / "x.parquet")

    def peak(rows: int) -> int:
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        most = 0
        for _ in read_chunks([path], instances=rows):
            most = max(most, tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before)
        tracemalloc.stop()
        return most

    assert peak(100) < 0.5 * peak(len(big))


@pytest.mark.parametrize(
    "lines",
    [
        [{"bag_id": 1, "instances": [[1]]}, {"bag_id": 2, "instances": [[1]]}, {"bag_id": "x", "instances": [["y"]]}],
        [{"f": 1}, {"bag_id": None, "f": 2}, {"bag_id": 2, "f": 1}],
    ],
)
def test_lines_of_another_kind_further_down_are_an_error_of_ours(tmp_path: Path, lines: list[dict]):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({**line, "candidates": ["a"]}) + "\n" for line in lines))
    with pytest.raises(DataError):
        list(read_chunks([path], Columns(), ["a", "b"], 2))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_text_of_any_encoding_comes_in_chunks(tmp_path, encoding):
    path = tmp_path / "x.csv"
    rows = "".join(f"Käuzchen {i};Grünfink|Star;{i},5\n" for i in range(9))
    path.write_text("sep=;\nbag_id;candidates;Länge\n" + rows, encoding=encoding)
    parts = list(read_chunks([path], Columns(), instances=2))
    assert len(parts) > 3
    assert [name for part in parts for name in part.dataset.bag_ids.tolist()] == [f"Käuzchen {i}" for i in range(9)]
    assert [x for part in parts for x in part.dataset.bags.instances[:, 0].tolist()] == [i + 0.5 for i in range(9)]
    assert parts[0].dataset.bags.feature_names == ("Länge",)
    assert any("Latin-1" in remark for remark in parts[0].remarks) == (encoding == "cp1252")


def _zstd(text: bytes) -> bytes:
    return pa.Codec("zstd").compress(text, asbytes=True)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    ("compression", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", _zstd)]
)
def test_compressed_text_comes_in_chunks(tmp_path: Path, suffix: str, compression: str, pack):
    ds = mipl.load("digits")[:12]  # images: a first line of mipl's
    text = ds.save(tmp_path / f"x{suffix}").read_bytes()
    path = tmp_path / f"x{suffix}{compression}"
    path.write_bytes(pack(text))
    parts = [part.dataset for part in read_chunks([path], unlabelled=ds.classes, instances=3)]
    assert len(parts) > 3
    assert mipl.Bags.concatenate([part.bags for part in parts]) == ds.bags
    path.write_bytes(pack(text)[:-20])
    with pytest.raises(DataError, match=r"x\.(csv|jsonl)\."):
        list(read_chunks([path], unlabelled=ds.classes, instances=3))


def test_a_compressed_file_counts_for_more_than_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mipl.scanning.chunks._CHUNK_BYTES", 1000)
    for name, size, large in (("a.csv", 900, False), ("b.csv.gz", 200, False), ("c.csv.gz", 300, True)):
        (tmp_path / name).write_bytes(b"x" * size)
        assert is_large([tmp_path / name]) == large
    (tmp_path / "d.parquet.gz").write_bytes(b"x" * 5000)  # is read whole
    assert not is_large([tmp_path / "d.parquet.gz"])
