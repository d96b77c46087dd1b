"""mipl resolve: the true name of each bag's label, whatever classes the file and the model have."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mipl


@pytest.fixture
def model(run, animals):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")


def test_a_file_of_two_of_the_models_three_classes_gets_the_right_names(run, animals, model, rows):
    told = run("resolve", "new.csv", "--model", "m.mipl", "--out", "labels.csv").stderr
    found = rows("labels.csv")
    assert {row["bag_id"]: row["label"] for row in found} == animals
    assert all(row["candidates"] == "bee|cat" for row in found)
    assert all(float(row["p(ant)"]) == 0 for row in found)
    assert "accuracy against the file's labels: 1.000" in told


def test_votes_of_a_new_file_are_used_or_it_is_said_that_they_are_not(run, animals, model, rows, tmp_path):
    (tmp_path / "voted.csv").write_text("bag_id,candidates,length,width\nx,bee:0.03|cat:0.9,15,15\n")
    told = run("resolve", "voted.csv", "--model", "m.mipl").stderr
    assert "PL-kNN uses candidate sets only" in told
    run("fit", "train.csv", "-p", "n_landmarks=20", "-p", "cross_fit=0", "--out", "g.mipl", "--quiet")
    told = run("resolve", "voted.csv", "--model", "g.mipl", "--out", "labels.csv").stderr
    assert "sets only" not in told
    voted = rows("labels.csv")[0]
    (tmp_path / "voted.csv").write_text("bag_id,candidates,length,width\nx,bee|cat,15,15\n")
    run("resolve", "voted.csv", "--model", "g.mipl", "--out", "labels.csv")
    plain = rows("labels.csv")[0]
    odds = [float(row["p(cat)"]) / float(row["p(bee)"]) for row in (voted, plain)]
    assert odds[0] / odds[1] == pytest.approx(30, rel=1e-3)


def test_a_candidate_that_the_model_does_not_know_is_an_error(run, animals, model, tmp_path):
    (tmp_path / "dog.csv").write_text("bag_id,candidates,length,width\nx,bee|cat,1,2\ny,bee|dog,3,4\n")
    told = run("resolve", "dog.csv", "--model", "m.mipl", "--out", "labels.csv", code=2).stderr
    assert told.startswith("mipl: bag 'y' has the candidate 'dog', which the model does not know")
    assert not (tmp_path / "labels.csv").exists()


def test_a_file_with_numbers_for_names_is_an_error(run, animals, model, tmp_path):
    (tmp_path / "numbers.csv").write_text("bag_id,candidates,length,width\nx,0|1,1,2\ny,1,3,4\n")
    told = run("resolve", "numbers.csv", "--model", "m.mipl", code=2).stderr
    assert told.startswith("mipl: the classes of the data set are integers (0, 1), those of the model text ('ant', ")


def test_without_a_model_one_is_fitted_on_the_file(run, rows, tmp_path):
    data = mipl.load("digits", r=2)
    data.save(tmp_path / "d.parquet")
    told = run("resolve", "d.parquet", "-m", "PL-kNN", "-p", "embed=maxmin", "--out", "labels.csv").stderr
    found = rows("labels.csv")
    posterior = mipl.make("PL-kNN", embed="maxmin").fit(data).resolve(data)
    assert [row["label"] for row in found] == data.classes[posterior.argmax(axis=1)].tolist()
    assert all(row["label"] in row["candidates"].split("|") for row in found)
    share = np.mean([row["label"] == name for row, name in zip(found, data.label_names(), strict=True)])
    assert f"accuracy against the file's labels: {share:.3f}" in told


def test_json_has_the_rows_and_the_table_the_first_of_them(run, animals, model):
    found = json.loads(run("resolve", "new.csv", "--model", "m.mipl", "--json").stdout)
    assert {row["bag_id"]: row["label"] for row in found} == animals
    assert found[0]["candidates"] == ["bee", "cat"]
    lines = run("resolve", "new.csv", "--model", "m.mipl").stdout.splitlines()
    words = [line.split() for line in lines if line.strip().startswith("n")]
    assert {line[0]: line[1] for line in words} == animals


def test_a_dash_writes_the_table_to_standard_output(run, animals, model, tmp_path):
    told = run("resolve", "new.csv", "--model", "m.mipl", "--out", "-")
    run("resolve", "new.csv", "--model", "m.mipl", "--out", "x.csv")
    assert told.stdout == (tmp_path / "x.csv").read_text()
    assert not (tmp_path / "-").exists()


def test_next_prints_the_bags_that_would_teach_most_and_still_writes_all_answers(run, rows, tmp_path):
    data = mipl.load("digits", r=2)[:60]
    data.save(tmp_path / "d.parquet")
    fitted = ("-m", "BagGP", "-p", "n_landmarks=60", "-p", "cross_fit=2")
    found = json.loads(run("resolve", "d.parquet", *fitted, "--next", 3, "--json", "--out", "all.csv").stdout)
    expected = mipl.resolve(data, mipl.BagGP(n_landmarks=60, cross_fit=2)).next_to_label(3)
    assert [row["bag_id"] for row in found] == [row["bag_id"] for row in expected]
    assert len(rows("all.csv")) == 60
    told = run("resolve", "d.parquet", "-m", "PL-kNN", "--next", 3)
    assert "by the entropy of the bag alone" in told.stderr
    assert len([line for line in told.stdout.splitlines() if line.strip()[:1].isdigit()]) == 3
