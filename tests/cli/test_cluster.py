"""--scheduler, and fits to files that are larger than memory: the same model and answers as without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from dask_cluster import few_steps

import mipl

distributed = pytest.importorskip("distributed")

FIT = ("-p", "n_landmarks=30", "-p", "cross_fit=0")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def parts(tmp_path):
    ds = mipl.load("digits")[:40]
    (tmp_path / "in").mkdir()
    ds[:15].save(tmp_path / "in" / "1.parquet")
    ds[15:].save(tmp_path / "in" / "2.parquet")
    return ds


def test_a_fit_and_predictions_on_a_cluster_are_those_of_this_machine(run, parts, address, tmp_path, monkeypatch):
    few_steps(monkeypatch)
    told = run("fit", "in/*.parquet", *FIT, "--scheduler", address, "--out", "m.mipl")
    assert "read block by block" in told.stderr
    assert "fitted on 40 bags" in told.stderr
    found = mipl.load_model(tmp_path / "m.mipl")
    wanted = mipl.BagGP(n_landmarks=30, cross_fit=0).fit(parts)
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    run("predict", "m.mipl", "in/*.parquet", "--out", "there/", "--scheduler", address, "--quiet")
    run("predict", "m.mipl", "in/*.parquet", "--out", "here/", "--quiet")
    for name in ("1.parquet", "2.parquet"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_files_that_would_fill_half_of_the_memory_are_read_block_by_block(run, parts, monkeypatch, tmp_path):
    monkeypatch.setattr("mipl.scanning.chunks._CHUNK_BYTES", 1000)
    run("fit", "in/*.parquet", *FIT, "--out", "loaded.mipl", "--quiet")
    monkeypatch.setattr("mipl.compute.free_memory", lambda: 1000.0)
    told = run("fit", "in/*.parquet", *FIT, "--out", "scanned.mipl")
    assert "more than half of the free memory: the files are read block by block" in told.stderr
    loaded, scanned = (mipl.load_model(tmp_path / f"{name}.mipl") for name in ("loaded", "scanned"))
    np.testing.assert_array_equal(loaded.coef_, scanned.coef_)
    told = run("fit", "in/*.parquet", "-m", "PL-kNN", "--out", "knn.mipl")  # it has no other way than to load them
    assert "block by block" not in told.stderr


def test_what_does_not_go_with_a_cluster_is_one_line(run, parts):
    for words in (
        ("fit", "in/*.parquet", "-m", "PL-kNN", "--scheduler", "tcp://127.0.0.1:1", "--out", "m.mipl"),
        ("predict", "m.mipl", "in/*.parquet", "--scheduler", "tcp://127.0.0.1:1", "--out", "a.csv"),
        ("predict", "m.mipl", "in/*.parquet", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2", "--out", "a/"),
    ):
        told = run(*words, code=2)
        assert told.stderr.count("\n") == 1
        assert "--scheduler" in told.stderr
