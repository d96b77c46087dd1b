"""mipl predict: the model's classes, compared with the file's labels by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mipl


@pytest.fixture
def model(run, animals):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")


def test_each_bag_has_its_label_the_second_best_and_the_probability_of_every_class(run, animals, model, rows, tmp_path):
    run("predict", "m.mipl", "new.csv", "--out", "p.csv")
    found = rows("p.csv")
    assert {row["bag_id"]: row["predicted"] for row in found} == animals
    proba = mipl.load_model(tmp_path / "m.mipl").predict_proba(mipl.load(tmp_path / "new.csv"))
    for row, p in zip(found, proba, strict=True):
        assert [float(row[f"p({name})"]) for name in ("ant", "bee", "cat")] == pytest.approx(p, abs=1e-6)
        assert float(row["probability"]) == pytest.approx(max(p), abs=1e-6)
        assert float(row["second_probability"]) == pytest.approx(np.sort(p)[-2], abs=1e-6)
        assert row["second_label"] != row["predicted"]
    assert "instance" not in found[0]


def test_accuracy_is_by_name_and_a_class_that_the_model_lacks_is_a_mistake(run, animals, model, tmp_path):
    answer = json.loads(run("predict", "m.mipl", "new.csv", "--json").stdout)
    assert (answer["bags"], answer["accuracy"]) == (4, 1.0)
    text = (tmp_path / "new.csv").read_text()
    (tmp_path / "dog.csv").write_text(text.replace("cat", "dog"))
    answer = json.loads(run("predict", "m.mipl", "dog.csv", "--json").stdout)
    assert answer["accuracy"] == 0.5
    assert [row["truth"] for row in answer["predictions"]] == ["bee", "dog", "dog", "bee"]


def test_a_file_without_labels_needs_no_names_of_the_models(run, animals, model, tmp_path):
    (tmp_path / "plain.csv").write_text("bag_id,candidates,length,width\nx,1|2,10,10\ny,1,20,20\n")
    done = run("predict", "m.mipl", "plain.csv", "--json")
    assert [row["predicted"] for row in json.loads(done.stdout)["predictions"]] == ["bee", "cat"]
    assert json.loads(done.stdout)["accuracy"] is None


def test_columns_are_found_by_name(run, animals, model, tmp_path):
    (tmp_path / "turned.csv").write_text("bag_id,candidates,width,length\nx,a|b,10,10\ny,a,20,20\n")
    answer = json.loads(run("predict", "m.mipl", "turned.csv", "--json").stdout)
    assert [row["predicted"] for row in answer["predictions"]] == ["bee", "cat"]
    (tmp_path / "other.csv").write_text("bag_id,candidates,width,weight\nx,a|b,10,10\ny,a,20,20\n")
    assert "'weight'" in run("predict", "m.mipl", "other.csv", code=2).stderr


def test_the_table_shows_twenty_bags_and_says_how_many_more_there_are(run, tmp_path):
    run("fit", "digits", "-m", "PL-kNN", "--out", "m.mipl")
    done = run("predict", "m.mipl", "digits")
    assert "... and 130 more; use --out FILE.csv for all" in done.stderr
    header, *lines = [line for line in done.stdout.splitlines() if line.strip() and "─" not in line]
    assert header.split() == ["bag", "id", "predicted", "probability", "second", "label", "truth"]
    assert len(lines) == 20


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_chunks_of_a_file_give_the_answers_of_the_whole(run, animals, model, tmp_path, suffix):
    whole = run("predict", "m.mipl", "new.csv", "--out", f"whole{suffix}").stderr
    parts = run("predict", "m.mipl", "new.csv", "--out", f"parts{suffix}", "--chunk", 4).stderr
    assert whole.replace("whole", "parts").endswith(parts)
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}.get(suffix, lambda path: pd.read_json(path, lines=True))
    pd.testing.assert_frame_equal(read(tmp_path / f"whole{suffix}"), read(tmp_path / f"parts{suffix}"))
    assert "--out FILE" in run("predict", "m.mipl", "new.csv", "--chunk", 4, code=2).stderr


def test_a_file_whose_bags_are_all_of_one_class_is_predicted(run, animals, model, tmp_path):
    (tmp_path / "bees.csv").write_text("bag_id,candidates,length,width\nx,bee,10,10\ny,bee,10,10\n")
    answer = json.loads(run("predict", "m.mipl", "bees.csv", "--json").stdout)
    assert [row["predicted"] for row in answer["predictions"]] == ["bee", "bee"]


def test_large_files_are_read_in_chunks_without_being_asked(run, animals, model, rows, monkeypatch):
    run("predict", "m.mipl", "new.csv", "--out", "whole.csv", "--instances", "whole-instances.csv")
    monkeypatch.setattr("mipl.scanning.chunks._CHUNK_BYTES", 200)
    sizes = []
    explain = mipl.resolving.explain
    monkeypatch.setattr(
        "mipl.prediction.explain", lambda *given, **more: sizes.append(len(given[1])) or explain(*given, **more)
    )
    run("predict", "m.mipl", "new.csv", "--out", "parts.csv", "--instances", "parts-instances.csv")
    assert len(sizes) > 2
    assert max(sizes) < 4
    assert rows("parts.csv") == rows("whole.csv")
    assert rows("parts-instances.csv") == rows("whole-instances.csv")


def test_many_files_need_a_folder_for_several_processes(run, animals, model):
    assert "--out answers/" in run("predict", "m.mipl", "new.csv", "--out", "p.csv", "--jobs", 2, code=2).stderr
    assert (
        "not with a folder" in run("predict", "m.mipl", "new.csv", "--out", "p/", "--instances", "i.csv", code=2).stderr
    )


NEW = "bag_id,night,width,temperature,length,remark,row_id\n" + "".join(
    f"{bag},{i},{x},{t},{x},dry,{i}\n" for i, (bag, x, t) in enumerate([("x", 10, ""), ("y", 20, 7)])
)


@pytest.mark.parametrize("words", [(), ("--chunk", "1", "--out", "-")], ids=["whole", "chunks"])
def test_columns_that_the_model_does_not_know_are_left_out_with_one_remark(run, animals, model, tmp_path, words):
    # One of them even has a missing value, and one is a running number.
    (tmp_path / "new.csv").write_text(NEW)
    done = run("predict", "m.mipl", "new.csv", *words)
    remarks = [line for line in done.stderr.splitlines() if "left out" in line]
    assert len(remarks) == 1
    for name in ("night", "temperature", "remark", "row_id"):
        assert repr(name) in remarks[0].partition("left out: ")[2]
    assert remarks[0].endswith("(the model does not know it)")
    assert [line.split()[0].split(",")[:2] for line in done.stdout.splitlines() if line.startswith(("x,", "y,"))] == (
        [["x", "bee"], ["y", "cat"]] if words else []
    )
    answer = json.loads(run("predict", "m.mipl", "new.csv", "--json").stdout)
    assert [row["predicted"] for row in answer["predictions"]] == ["bee", "cat"]


def test_a_column_that_the_model_needs_is_named_where_it_is_missing(run, animals, model, tmp_path):
    (tmp_path / "new.csv").write_text(NEW.replace("length", "Lenght"))
    told = run("predict", "m.mipl", "new.csv", code=2).stderr
    assert told.startswith(
        "mipl: new.csv has no column 'length', which the model was fitted with; did you mean 'Lenght'?"
    )


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_extra_features_of_nested_files_are_left_out_by_name(run, animals, model, tmp_path, suffix):
    ds = mipl.load(tmp_path / "new.csv")
    wide = np.column_stack([np.full(ds.bags.n_instances, 99.0), ds.bags.instances[:, 1], ds.bags.instances[:, 0]])
    bags = mipl.Bags(wide, ds.bags.offsets, feature_names=["age", "width", "length"])
    mipl.MIPLDataset(bags, ds.candidate_sets(), bag_ids=ds.bag_ids).save(tmp_path / f"wide{suffix}")
    done = run("predict", "m.mipl", f"wide{suffix}", "--json")
    assert {row["bag_id"]: row["predicted"] for row in json.loads(done.stdout)["predictions"]} == animals
    assert "'age' (the model does not know it)" in run("explain", "m.mipl", f"wide{suffix}").stderr


def test_resolve_with_a_model_takes_its_features_too(run, animals, model, tmp_path):
    text = (tmp_path / "new.csv").read_text().splitlines()
    (tmp_path / "wide.csv").write_text("\n".join([f"{text[0]},age", *(f"{line},1e9" for line in text[1:])]))
    found = json.loads(run("resolve", "wide.csv", "--model", "m.mipl", "--json").stdout)
    assert {row["bag_id"]: row["label"] for row in found} == animals
