"""--background: a class whose bags have no positive instance, on the commands that read candidates."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mipl


@pytest.fixture
def owls(tmp_path):
    """Bags of noise, one instance of an owl in every second; all but a few are "owl or silence"."""
    rng = np.random.default_rng(0)
    instances = rng.standard_normal((60, 4, 2)).astype(np.float32)
    instances[::2, 0] += 9
    sets = [["owl"] if i < 12 and i % 2 == 0 else ["silence"] if i < 12 else ["owl", "silence"] for i in range(60)]
    truth = np.where(np.arange(60) % 2 == 0, "owl", "silence")
    mipl.MIPLDataset(instances, sets, truth.tolist()).save(tmp_path / "owls.csv")
    return truth


def test_resolve_and_fit_hand_the_background_to_the_method(run, rows, owls, tmp_path):
    run("resolve", "owls.csv", "--background", "silence", "--out", "labels.csv", "-q")
    found = rows("labels.csv")
    assert np.mean([row["label"] for row in found] == owls) >= 0.95  # twelve bags of sixty tell the classes apart
    given = mipl.load(tmp_path / "owls.csv", background="silence")
    expected = mipl.resolve(given)
    np.testing.assert_allclose([float(row["p(owl)"]) for row in found], expected.posterior[:, 0], atol=1e-6)
    assert np.abs(expected.posterior - mipl.resolve(mipl.load(tmp_path / "owls.csv")).posterior).max() > 1e-3
    run("fit", "owls.csv", "--background", "silence", "--out", "m.mipl", "-q")
    model = mipl.load_model(tmp_path / "m.mipl")
    assert model.classes_[model.background_] == "silence"
    told = run("resolve", "owls.csv", "--model", "m.mipl", "--background", "silence", code=2).stderr
    assert "a saved model has its own background class" in told


def test_the_background_is_kept_in_files_and_need_not_be_said_again(run, owls, tmp_path):
    mipl.load(tmp_path / "owls.csv", background="silence").save(tmp_path / "again.parquet")
    run("fit", "again.parquet", "--out", "m.mipl", "-q")
    assert mipl.load_model(tmp_path / "m.mipl").background_ == 1


def test_a_background_that_is_no_class_is_refused(run, owls):
    told = run("fit", "owls.csv", "--background", "nothing", "--out", "m.mipl", code=2).stderr
    assert "the background class 'nothing' is not among the classes ['owl', 'silence']" in told
    report = json.loads(run("check", "owls.csv", "--background", "nothing", "--json", code=1).stdout)
    assert "'nothing' is not among the classes" in str(report["problems"])
    run("check", "owls.csv", "--background", "silence")


def test_digits_stand_for_a_class_that_is_a_number(run, tmp_path):
    (tmp_path / "n.csv").write_text("bag_id,candidates,x\na,0|1,1\nb,1,2\nc,0,3\n")
    assert mipl.load(tmp_path / "n.csv", background="0").background == 0
