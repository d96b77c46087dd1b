"""A fitted model answers for a scan as it does for the same bags in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

import mipl
from mipl.errors import DataError


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("scan")
    train, test = mipl.load("digits").split(0.5, seed=0)
    test[:30].save(folder / "1.parquet")
    test[30:].save(folder / "2.parquet")
    return mipl.make("PL-kNN").fit(train), test, mipl.scan(folder), train


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mipl.scanning.scan._CHUNK_BYTES", 4 * 64 * 100)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_instances", "resolve"])
def test_answers_are_those_of_all_bags_at_once(trained, method: str):
    model, test, scan, _ = trained
    assert len(list(scan.chunks())) > 3
    answers = getattr(model, method)(scan), getattr(model, method)(test)
    if method == "predict":
        assert answers[0].tolist() == answers[1].tolist()
    else:
        np.testing.assert_allclose(*answers, atol=1e-6)


def test_scores_are_means_over_all_bags(trained):
    model, test, scan, _ = trained
    assert model.score(scan) == pytest.approx(model.score(test))
    assert mipl.label_free_score(model, scan) == pytest.approx(mipl.label_free_score(model, test), rel=1e-5)
    for call in (lambda: model.score(scan, test.labels), lambda: model.resolve(scan, test.candidates)):
        with pytest.raises(DataError, match="a scan brings its own"):
            call()


def test_a_resolution_of_a_scan_is_that_of_its_data_set(trained):
    model, test, scan, _ = trained
    for found, wanted in (
        (mipl.explain(model, scan), mipl.explain(model, test)),
        (mipl.resolve(scan, model), mipl.resolve(test, model)),
    ):
        assert found.bag_ids.tolist() == wanted.bag_ids.tolist()
        assert found.labels.tolist() == wanted.labels.tolist()
        assert found.instance.tolist() == wanted.instance.tolist()
        assert found.accuracy == wanted.accuracy
        np.testing.assert_allclose(found.posterior, wanted.posterior, atol=1e-6)


def test_bags_without_candidates_are_predicted(trained, tmp_path: Path):
    import pyarrow.parquet as pq

    model, test, scan, _ = trained
    pq.write_table(pq.read_table(scan.files[0]).drop_columns(["candidates", "label"]), tmp_path / "new.parquet")
    assert model.predict(mipl.scan(tmp_path)).tolist() == model.predict(test[:30]).tolist()


def test_other_methods_say_in_one_line_what_to_fit_instead(trained):
    _, _, scan, _ = trained
    for name in ("PL-kNN", "MIPLGP", "VWSGP"):
        with pytest.raises(DataError, match=rf"^{name} .*needs all bags in memory .* fit\(scan.sample\(n\)\)"):
            mipl.make(name).fit(scan)
    assert mipl.make("PL-kNN").fit(scan.sample(50)).score(scan) > 0.3


def test_a_side_without_bags_has_no_answers(trained):
    model, _, scan, _ = trained
    with pytest.raises(DataError, match="no bags to answer for"):
        model.predict(scan.filter(pc.field("bag_id") == -5))
