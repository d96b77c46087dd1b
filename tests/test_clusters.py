"""A model answers for a scan that is on a cluster as it does in this process; files are predicted there too."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import mipl
from mipl.clusters import connect
from mipl.errors import DataError, UnavailableError
from mipl.io.options import Columns
from mipl.prediction import Reading, predict_to_folder

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster inside this process; tests/baggp/test_on_dask.py has one of real processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("scan")
    train, test = mipl.load("digits").split(0.5, seed=0)
    test[:30].save(folder / "1.parquet")
    test[30:].save(folder / "2.parquet")
    return mipl.make("PL-kNN").fit(train), mipl.scan(folder), folder


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mipl.scanning.scan._CHUNK_BYTES", 4 * 64 * 200)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_instances", "resolve"])
def test_answers_are_those_of_this_process(trained, client, method: str):
    model, scan, _ = trained
    found, wanted = (getattr(model, method)(each) for each in (scan.on(client), scan))
    assert found.dtype == wanted.dtype
    if method == "predict":
        assert found.tolist() == wanted.tolist()
    else:
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_scores_and_resolutions_are_those_of_this_process(trained, client):
    model, scan, _ = trained
    there = scan.on(client)
    assert model.score(there) == pytest.approx(model.score(scan))
    assert mipl.label_free_score(model, there) == pytest.approx(mipl.label_free_score(model, scan))
    for answer in (lambda bags: mipl.explain(model, bags), lambda bags: mipl.resolve(bags, model)):
        found, wanted = answer(there), answer(scan)
        assert found.bag_ids.tolist() == wanted.bag_ids.tolist()
        assert found.instance.tolist() == wanted.instance.tolist()
        np.testing.assert_allclose(found.posterior, wanted.posterior, atol=1e-6)


def test_parts_of_a_scan_stay_on_the_cluster_and_its_client_does_not_travel(trained, client):
    _, scan, _ = trained
    there = scan.on(client)
    parts = [there.filter(pc.field("bag_id") >= 0), *there.split(0.5)]
    assert all(part.client is client for part in parts)
    assert pickle.loads(pickle.dumps(there)).client is None
    assert there.on(None).client is None
    chosen = np.array([0, 7, 31, 50])
    found, wanted = there.take_bags(chosen), scan.take_bags(chosen)
    assert found.offsets.tolist() == wanted.offsets.tolist()
    np.testing.assert_array_equal(found.instances, wanted.instances)


def test_what_is_known_of_labels_is_read_by_the_workers(client, tmp_path: Path):
    ds = mipl.load("digits")
    votes = [dict.fromkeys(ds.classes[row], 1.0 + i % 3) for i, row in enumerate(ds.candidates)]
    groups = np.arange(len(ds)) // 4
    given = mipl.MIPLDataset(ds.bags, votes, classes=ds.classes, bag_ids=ds.bag_ids, groups=groups)
    given[:70].save(tmp_path / "1.parquet")
    given[70:].save(tmp_path / "2.parquet")
    scan = mipl.scan(tmp_path)
    found, wanted = scan.on(client).filter(pc.field("bag_id") >= 5).supervision(), given[5:].supervision()
    assert len(scan.chunk_blocks()) > 2
    for name in ("candidates", "weights", "groups"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_a_side_without_bags_has_no_answers(trained, client):
    model, scan, _ = trained
    with pytest.raises(DataError, match="no bags to answer for"):
        model.predict(scan.on(client).filter(pc.field("bag_id") == -5))


def test_files_are_predicted_into_a_folder_and_those_that_are_done_are_skipped(trained, client, tmp_path: Path):
    model, _, folder = trained
    file = model.save(tmp_path / "m.mipl")
    reading = Reading(Columns())
    there = predict_to_folder(file, [str(folder)], tmp_path / "there", reading, client=client)
    here = predict_to_folder(file, [str(folder)], tmp_path / "here", reading)
    assert [(done.source, done.bags, done.right) for done in there] == [
        (done.source, done.bags, done.right) for done in here
    ]
    for done, other in zip(there, here, strict=True):
        assert Path(done.output).read_bytes() == Path(other.output).read_bytes()
    again = predict_to_folder(file, [str(folder)], tmp_path / "there", reading, client=client)
    assert all(done.skipped for done in again)


def test_a_scheduler_that_does_not_answer_is_a_clear_error():
    with pytest.raises(UnavailableError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        connect("tcp://127.0.0.1:1", timeout=0.5)
