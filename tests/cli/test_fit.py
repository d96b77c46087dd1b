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


def test_candidate_noise_is_taken_from_the_command_line_and_an_impossible_one_is_one_line(run, animals, tmp_path):
    run("fit", "train.csv", "-p", "candidate_noise=auto", "-p", "n_landmarks=30", "--out", "m.mipl", "--quiet")
    model = mipl.load_model(tmp_path / "m.mipl")
    assert model.candidate_noise == "auto"
    assert 0 <= model.candidate_noise_ < 0.5
    for value in ("1.5", "often"):
        told = run("resolve", "train.csv", "-p", f"candidate_noise={value}", "--out", "labels.csv", "--quiet", code=2)
        assert told.stderr.count("\n") == 1
        assert "'candidate_noise' parameter of BagGP" in told.stderr
