"""mipl data: what is built, described and listed is what the library says."""

from __future__ import annotations

import json

from matplotlib.image import imread

import mipl


def test_what_is_built_is_described_alike_everywhere(run, tmp_path):
    built = json.loads(run("data", "build", "digits", "--r", 2, "--seed", 3, "--out", "d.npz", "--json").stdout)
    assert built == json.loads(run("data", "info", "d.npz", "--json").stdout)
    assert built == mipl.load("digits", r=2, seed=3).summary()
    assert mipl.load(tmp_path / "d.npz").equals(mipl.load("digits", r=2, seed=3))


def test_all_data_sets_are_listed(run):
    listed = json.loads(run("data", "list", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(mipl.datasets.dataset_names())
    table = run("data", "list").stdout
    assert all(entry["description"] in table for entry in listed)


def test_bags_are_drawn(run, tmp_path):
    run("data", "show", "digits", "--out", "few.png", "--bags", 2)
    run("data", "show", "digits", "--out", "more.png", "--bags", 4)
    few, more = imread(tmp_path / "few.png"), imread(tmp_path / "more.png")
    assert few.shape[0] < more.shape[0]
    assert more.std() > 0.05


def test_votes_and_the_background_class_are_described(run, tmp_path):
    ds = mipl.load("digits", r=1)
    voted = mipl.MIPLDataset(ds.bags, ds.candidates * 3, classes=ds.classes, background="8")
    voted.save(tmp_path / "v.parquet")
    told = run("data", "info", "v.parquet").stdout.split()
    assert told[told.index("weights") + 1] == "background"
    assert told[-1] == "8"
    assert json.loads(run("data", "info", "v.parquet", "--json").stdout)["weights"] == 6


def test_a_data_set_without_drawn_labels_takes_no_r(run, raw_data):
    build = ("data", "build", "birdsong-natural", "--out", "b.npz")
    assert json.loads(run(*build, "--json", "--option", "min_species=5").stdout)["bags"] == 1
    assert "birdsong-natural has no option 'r'" in run(*build, "--r", 1, code=2).stderr
