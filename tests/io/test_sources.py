"""Several files, folders, patterns, standard input and compression are one data set as one file would be."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import datasets, same_folder

import mipl
from mipl.errors import DataError

SUFFIXES = [".csv", ".parquet", ".jsonl", ".feather", ".npz"]


@given(ds=datasets(), cut=st.integers(0, 5), suffixes=st.tuples(*[st.sampled_from(SUFFIXES)] * 2))
@same_folder
def test_a_data_set_in_two_files_of_any_formats_is_the_data_set(tmp_path: Path, ds, cut, suffixes):
    if not 0 < cut < len(ds):
        return
    files = [
        part.save(tmp_path / f"{i}{s}") for i, (part, s) in enumerate(zip((ds[:cut], ds[cut:]), suffixes, strict=True))
    ]
    back = mipl.load(files)
    assert back.bags.instances.tobytes() == ds.bags.instances.tobytes()
    assert (
        back.candidate_sets() == [sorted(s) for s in ds.candidate_sets()]
        or back.candidate_sets() == ds.candidate_sets()
    )
    assert list(map(str, back.bag_ids.tolist())) == list(map(str, ds.bag_ids.tolist()))
    assert (back.label_names() or [None] * len(ds)) == (ds.label_names() or [None] * len(ds))


def test_a_folder_and_a_pattern_are_their_files(tmp_path: Path):
    ds = mipl.load("digits")
    (tmp_path / "day=1").mkdir()
    for i in range(3):
        ds[50 * i : 50 * i + 50].save(tmp_path / "day=1" / f"part-{i}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "day=1" / ".part-0.parquet.crc").touch()
    assert mipl.load(tmp_path).equals(ds)
    assert mipl.load(str(tmp_path / "*" / "part-*.parquet")).equals(ds)
    with pytest.raises(DataError, match="no file matches"):
        mipl.load(str(tmp_path / "*.csv"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no data files"):
        mipl.load(tmp_path / "empty")


def test_one_file_of_a_folder_may_hold_a_single_class(tmp_path: Path):
    (tmp_path / "a.csv").write_text("bag_id,candidates,w\n1,x,1\n")
    (tmp_path / "b.csv").write_text("w,bag_id,candidates\n2,2,y\n")
    assert mipl.load(tmp_path).classes.tolist() == ["x", "y"]


def test_a_bag_in_two_files_and_other_features_are_refused(tmp_path: Path):
    (tmp_path / "a.csv").write_text("bag_id,candidates,w\n1,x,1\n")
    (tmp_path / "b.csv").write_text("bag_id,candidates,w\n1,y,1\n")
    with pytest.raises(DataError, match="the bag 1 is in both"):
        mipl.load(tmp_path)
    (tmp_path / "b.csv").write_text("bag_id,candidates,v\n2,y,1\n")
    with pytest.raises(DataError, match="no column 'w'"):
        mipl.load(tmp_path)


PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_compressed_text_is_read_and_damage_is_a_clear_error(tmp_path: Path, suffix, compression):
    ds = mipl.load("digits")[:5]
    packed = PACK[compression](ds.save(tmp_path / f"x{suffix}").read_bytes())
    path = tmp_path / f"x{suffix}{compression}"
    path.write_bytes(packed)
    back = mipl.load(path)
    assert back.equals(ds)
    assert back.name == "x"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError):
        mipl.load(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".feather", ".csv.gz"])
def test_standard_input_is_told_by_its_first_bytes(tmp_path: Path, suffix, monkeypatch):
    ds = mipl.load("digits")[:5]
    data = ds.save(tmp_path / f"x{suffix.removesuffix('.gz')}").read_bytes()
    data = gzip.compress(data) if suffix.endswith(".gz") else data
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert mipl.load("-").equals(ds)


def test_a_place_in_one_of_several_files_is_named_by_its_file(tmp_path: Path):
    (tmp_path / "a.csv").write_text("bag_id,candidates,w\n1,x|y,1\n")
    (tmp_path / "b.csv").write_text("bag_id,candidates,w\n2,y,3\n3,x,\n")
    with pytest.raises(DataError, match=r"b\.csv: line 3, bag 3, instance 0, column 'w': the value is missing"):
        mipl.load(tmp_path)
    ds = mipl.load(tmp_path, missing="mean")
    np.testing.assert_array_equal(ds.bags.instances[:, 0], [1, 3, 2])
