"""mipl fit: a model file with the data's names and the parameters that were given."""

from __future__ import annotations

import json

import mipl


def test_the_model_knows_the_files_classes_and_features_and_the_parameters(run, animals, tmp_path):
    run("fit", "train.csv", "-m", "pl-knn", "-p", "embed=maxmin", "--out", "m.mipl")
    model = mipl.load_model(tmp_path / "m.mipl")
    assert (model.name, model.embed) == ("PL-kNN", "maxmin")
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.feature_names_in_.tolist() == ["length", "width"]


def test_json_says_what_was_done_and_quiet_says_nothing(run, animals):
    told = json.loads(run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--json").stdout)
    assert (told["method"], told["bags"], told["model"]) == ("PL-kNN", 36, "m.mipl")
    done = run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    assert done.stdout + done.stderr == ""


def test_a_model_file_can_be_a_link(run, animals, tmp_path):
    (tmp_path / "latest.mipl").symlink_to("m1.mipl")
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "latest.mipl")
    assert (tmp_path / "latest.mipl").is_symlink()
    assert mipl.load_model(tmp_path / "m1.mipl").name == "PL-kNN"
