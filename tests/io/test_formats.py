"""What all file formats promise: exact round trips, and a clear error for a damaged file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from io_support import SUFFIXES, datasets, load_or_refuse, same_folder

import mipl
from mipl.dataset import MIPLDataset
from mipl.errors import DataError


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(ds=datasets())
@same_folder
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, suffix: str, ds: MIPLDataset):
    back = mipl.load(ds.save(tmp_path / f"x{suffix}"))
    assert back.equals(ds)
    assert back.classes.dtype.kind == ds.classes.dtype.kind
    assert back.bags.feature_names == ds.bags.feature_names
    if suffix not in (".csv", ".jsonl"):
        assert back.name == ds.name


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv"])
@given(ds=datasets(more=True))
@same_folder
def test_weights_and_the_background_class_survive_to_the_last_bit(tmp_path: Path, suffix: str, ds: MIPLDataset):
    back = mipl.load(ds.save(tmp_path / f"x{suffix}"))
    assert back.equals(ds)
    assert (back.candidate_weights is None) == (ds.candidate_weights is None)
    assert type(back.background) is type(ds.background)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"candidate_weights": np.eye(2)}, "cannot hold weights of candidates; save as .parquet"),
        ({"background": 1}, "cannot hold a background class; save as .parquet"),
    ],
)
def test_the_published_mat_layout_refuses_what_it_cannot_hold(tmp_path: Path, more: dict, message: str):
    ds = MIPLDataset(np.zeros((2, 1, 1)), np.eye(2), **more)
    with pytest.raises(DataError, match=message):
        ds.save(tmp_path / "x.mat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_finds_its_columns_by_name_in_a_file_that_has_them_in_another_order(tmp_path: Path, suffix: str):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    bags = mipl.Bags(X, np.arange(0, 21, 2), feature_names=["width", "height", "depth"])
    ds = MIPLDataset(bags, [{"a", "b"}, {"a"}] * 5)
    model = mipl.make("PL-kNN").fit(ds)
    turned = MIPLDataset(bags.select_features(["depth", "width", "height"]), ds.candidates, classes=ds.classes)
    back = mipl.load(turned.save(tmp_path / f"turned{suffix}"))
    np.testing.assert_array_equal(model.predict_proba(back), model.predict_proba(ds))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, suffix, monkeypatch):
    ds = mipl.load("digits", r=1)
    path = ds.save(tmp_path / f"x{suffix}")
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ds[:5].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_is_a_clear_error_or_a_whole_data_set(tmp_path, suffix):
    path = mipl.load("digits", r=1)[:4].save(tmp_path / f"x{suffix}")
    content = path.read_bytes()
    for end in np.linspace(0, len(content) - 1, 40).astype(int):
        path.write_bytes(content[:end])
        if suffix in (".csv", ".jsonl"):
            load_or_refuse(path)  # cut at the end of a line it is a smaller file
        else:
            with pytest.raises(DataError):
                mipl.load(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".npz", ".csv", ".jsonl", ".mat"])
def test_files_and_folders_need_no_utf_8_in_their_names(tmp_path, suffix):
    folder = tmp_path / os.fsdecode(b"\xfe")
    folder.mkdir()
    ds = mipl.MIPLDataset([[[1.0], [2.0]], [[3.0]]], [{"a", "b"}, {"a"}])
    assert mipl.load(ds.save(folder / (os.fsdecode(b"\xff") + suffix))).equals(ds)
