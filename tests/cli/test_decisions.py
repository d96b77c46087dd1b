"""--decisions: what a person decided is certain for fit and for resolve."""

from __future__ import annotations

import numpy as np
import pytest

import mipl


@pytest.fixture
def two(tmp_path):
    """Bags of ants near 0 and bees near 10; every bag has both as candidates, so nothing tells which is which."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(10 * (i % 2), 0.1, (2, 2)) for i in range(12)]
    mipl.MIPLDataset(bags, [{"ant", "bee"}] * 12, bag_ids=[f"b{i}" for i in range(12)]).save(tmp_path / "two.csv")


def decide(folder, *lines):
    (folder / "d.csv").write_text("\n".join(["bag_id,decision", *lines]))


def test_a_few_decisions_tell_a_model_which_class_is_which(run, two, rows, tmp_path):
    decide(tmp_path, *(f"b{i},{'bee' if i % 2 else 'ant'}" for i in range(8)))
    run("resolve", "two.csv", "-m", "PL-kNN", "-p", "n_neighbors=3", "--decisions", "d.csv", "--out", "labels.csv")
    assert [row["label"] for row in rows("labels.csv")] == ["ant", "bee"] * 6
    run("fit", "two.csv", "-m", "PL-kNN", "-p", "n_neighbors=3", "--decisions", "d.csv", "--out", "m.mipl")
    run("predict", "m.mipl", "two.csv", "--out", "predicted.csv")
    assert [row["predicted"] for row in rows("predicted.csv")] == ["ant", "bee"] * 6


def test_a_decision_is_certain_against_the_evidence(run, two, rows, tmp_path):
    decide(tmp_path, "b0,bee", "b1,ant")
    told = run("resolve", "two.csv", "-m", "PL-kNN", "--decisions", "d.csv", "--out", "labels.csv").stderr
    found = {row["bag_id"]: row for row in rows("labels.csv")}
    assert (found["b0"]["label"], found["b0"]["probability"]) == ("bee", "1.0")
    assert (found["b1"]["label"], found["b1"]["probability"]) == ("ant", "1.0")
    assert "2 labels taken as certain from d.csv" in told


def test_a_bag_with_no_right_candidate_is_left_out_and_said_to_be(run, two, rows, tmp_path):
    decide(tmp_path, "b3,none of these", "b4,ant")
    told = run(
        "resolve", "two.csv", "-m", "PL-kNN", "--decisions", "d.csv", "--out", "x.csv", "--report", "p.html"
    ).stderr
    assert "b3" not in {row["bag_id"] for row in rows("x.csv")}
    assert "left out, none of their candidates is right: 'b3'" in told
    assert "none of their candidates is right" in (tmp_path / "p.html").read_text()


def test_a_decision_for_a_label_that_was_no_candidate_is_taken_and_said(run, two, rows, tmp_path):
    ds = mipl.load(tmp_path / "two.csv")
    mipl.MIPLDataset(ds.bags, [{"ant"}, *[{"ant", "bee"}] * 11], bag_ids=ds.bag_ids).save(tmp_path / "two.csv")
    decide(tmp_path, "b0,bee", "b1,bee")
    told = run("resolve", "two.csv", "-m", "PL-kNN", "--decisions", "d.csv", "--out", "labels.csv").stderr
    assert "warning: not among the candidates of their bags: 'bee' (bag 'b0')\n" in told
    assert rows("labels.csv")[0]["label"] == "bee"
    quiet = run("fit", "two.csv", "-m", "PL-kNN", "--decisions", "d.csv", "--out", "m.mipl", "--quiet").stderr
    assert quiet == ""


def test_decisions_about_other_data_are_an_error(run, two, tmp_path):
    decide(tmp_path, "x9,ant")
    told = run("fit", "two.csv", "--decisions", "d.csv", "--out", "m.mipl", code=2).stderr
    assert told.startswith("mipl: decisions about bags that are not in the data: 'x9'")
    assert not (tmp_path / "m.mipl").exists()
