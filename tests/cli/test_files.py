"""The options of files are the same on every command that reads them, and unlabelled files can be predicted."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import mipl
from mipl.persistence import _digest

READING = [("check",), ("fit",), ("predict",), ("explain",), ("resolve",), ("data", "info"), ("data", "show")]
NAMES = ["bag", "candidates", "label", "features", "ignore", "instance-id", "sep", "decimal", "missing"]
PRINTING = [*READING, ("demo",), ("methods",), ("info",), ("data", "list"), ("data", "build")]


@pytest.fixture
def spreadsheet(tmp_path, animals):
    """The training bags as a German spreadsheet has them, and a file of new bags without candidates."""
    train = pd.read_csv(tmp_path / "train.csv")
    train = train.rename(columns={"bag_id": "Aufnahme", "candidates": "Arten"})
    train["Silbe"] = [f"s{k}" for k in range(len(train))]
    train.to_csv(tmp_path / "blatt.csv", sep=";", decimal=",", encoding="latin-1")
    new = pd.read_csv(tmp_path / "new.csv").rename(columns={"bag_id": "Aufnahme"})
    new["Silbe"] = [f"n{k}" for k in range(len(new))]
    new.drop(columns=["candidates", "label"]).to_csv(tmp_path / "neu.csv", sep=";", decimal=",", index=False)
    return ("--bag", "Aufnahme")


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_every_command_that_reads_files_has_the_same_options_of_columns(run, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = run(*words, "-h").stdout
    assert all(f"--{name} " in told for name in NAMES)
    assert told == run(*words, "--help").stdout


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_every_command_that_prints_has_json_quiet_and_an_example(run, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = run(*words, "-h").stdout
    assert "--json " in told
    assert "--quiet " in told
    assert "Example" in told
    assert f"mipl {' '.join(words)}" in told


def test_a_spreadsheet_goes_all_the_way_with_the_users_own_names(run, spreadsheet, animals, rows, tmp_path):
    run(
        "fit",
        "blatt.csv",
        *spreadsheet,
        "--candidates",
        "Arten",
        "--instance-id",
        "Silbe",
        "-m",
        "PL-kNN",
        "-o",
        "m.mipl",
    )
    assert mipl.load_model(tmp_path / "m.mipl").feature_names_in_.tolist() == ["length", "width"]
    words = ("m.mipl", "neu.csv", *spreadsheet, "--instance-id", "Silbe")
    told = run("predict", *words, "--out", "p.csv", "--instances", "i.csv").stderr
    assert "bags by 'Aufnahme'; instances by 'Silbe'; 2 features 'length', 'width'" in told
    assert {row["bag_id"]: row["predicted"] for row in rows("p.csv")} == animals
    instances = rows("i.csv")
    assert [row["instance"] for row in instances] == [f"n{k}" for k in range(12)]
    probabilities = np.array([[float(row[k]) for k in ("p(ant)", "p(bee)", "p(cat)", "negative")] for row in instances])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    explained = json.loads(run("explain", *words, "--json").stdout)
    assert all(row["instance_id"] == f"n{3 * i + row['instance']}" for i, row in enumerate(explained))


def test_a_file_with_labels_but_no_candidates_is_compared(run, animals, tmp_path):
    run("fit", "train.csv", "-m", "PL-kNN", "-o", "m.mipl", "-q")
    pd.read_csv(tmp_path / "new.csv").drop(columns="candidates").to_csv(tmp_path / "told.csv", index=False)
    assert json.loads(run("predict", "m.mipl", "told.csv", "--json").stdout)["accuracy"] == 1.0


def test_standard_input_and_several_files_are_read(run, animals, tmp_path, monkeypatch):
    run("fit", "train.csv", "-m", "PL-kNN", "-o", "m.mipl", "-q")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO((tmp_path / "new.csv").read_bytes())))
    assert json.loads(run("predict", "m.mipl", "-", "--json").stdout)["bags"] == 4
    assert json.loads(run("predict", "m.mipl", "train.csv", "new.csv", "--json").stdout)["bags"] == 40
    assert json.loads(run("predict", "m.mipl", "*.csv", "--json").stdout)["bags"] == 40


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".xlsx"])
def test_the_suffix_chooses_the_format_of_the_answers(run, animals, tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    run("fit", "train.csv", "-m", "PL-kNN", "-o", "m.mipl", "-q")
    run("predict", "m.mipl", "new.csv", "-o", f"p{suffix}", "--instances", f"i{suffix}")
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}
    by_pandas = read.get(suffix, lambda path: pd.read_json(path, lines=True))
    assert dict(zip(*by_pandas(tmp_path / f"p{suffix}")[["bag_id", "predicted"]].to_numpy().T, strict=True)) == animals
    assert len(by_pandas(tmp_path / f"i{suffix}")) == 12


def test_quiet_says_nothing_about_columns_and_verbose_logs_it(run, spreadsheet):
    words = ("data", "info", "blatt.csv", *spreadsheet, "--candidates", "Arten")
    assert "left out: '' (a running index), 'Silbe' (text)" in run(*words).stderr
    assert run(*words, "--quiet").stderr == ""


def test_a_folder_of_data_that_does_not_exist_is_an_error(run, monkeypatch):
    monkeypatch.setenv("MIPL_DATA", "/no/such/folder")
    assert run("data", "info", "mnist", code=2).stderr.startswith("mipl: MIPL_DATA is '/no/such/folder'")


def test_info_says_what_a_model_is(run, animals):
    run("fit", "train.csv", "-m", "PL-kNN", "-p", "embed=maxmin", "-o", "m.mipl", "-q")
    told = json.loads(run("info", "m.mipl", "--json").stdout)
    assert told["method"] == "PL-kNN"
    assert told["parameters"] == {"embed": "maxmin"}
    assert told["classes"] == ["ant", "bee", "cat"]
    assert told["features"] == ["length", "width"]
    assert told["versions"]["mipl"] == mipl.__version__
    assert "embed=maxmin" in run("info", "m.mipl").stdout


def test_info_of_a_model_whose_versions_were_forged_is_told(run, animals):
    run("fit", "train.csv", "-m", "PL-kNN", "-o", "m.mipl", "-q")
    with safe_open("m.mipl", framework="numpy") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for versions in ([1], None, {"mipl": {"x": "\x1b[2J"}}):
        header = json.dumps({**json.loads(metadata["mipl_model"]), "versions": versions})
        save_file(arrays, "m.mipl", {**metadata, "mipl_model": header, "sha256": _digest(header, arrays)})
        assert "\x1b" not in run("info", "m.mipl").stdout


def test_completion_and_exit_codes_are_in_the_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = run("--help").stdout
    assert "--install-completion" in told
    assert "Exit codes: 0 done; 1" in told


def test_candidates_that_were_not_separated_are_told_of_where_they_are_used(run, tmp_path):
    sets = ['"owl, wren"', "jay"]
    rows = "\n".join(f"b{i},{sets[i % 2]},{i},{i % 3}" for i in range(12))
    (tmp_path / "birds.csv").write_text(f"bag_id,candidates,x,y\n{rows}\nb20,wren,1,2\n")
    told = run("fit", "birds.csv", "-m", "PL-kNN", "--out", "m.mipl").stderr
    assert "the class 'owl, wren' looks like several; if it is, pass --candidates-sep ','" in told
    assert (
        "looks like" not in run("fit", "birds.csv", "--candidates-sep", ",", "-m", "PL-kNN", "--out", "m.mipl").stderr
    )


@pytest.mark.parametrize("words", [("resolve",), ("fit", "--out", "m.mipl")])
def test_labels_that_are_numbers_beside_names_are_told_of_where_they_are_used(run, tmp_path, words):
    rows = [("a", ["owl", "wren"], 0), ("b", ["owl", "tit"], 1), ("c", ["wren", "tit"], 2), ("d", ["owl", "wren"], 0)]
    frame = pd.DataFrame(rows, columns=["bag_id", "candidates", "label"])
    frame.assign(x=[1.0, 2.0, 3.0, 1.5]).to_parquet(tmp_path / "x.parquet")
    told = run(*words, "x.parquet", "-m", "PL-kNN", "-p", "n_neighbors=1").stderr
    positions = "0 for 'owl', 1 for 'tit', 2 for 'wren'"
    assert f"the labels are numbers, and are taken for the positions of the sorted classes: {positions}\n" in told
    frame.assign(x=[1.0, 2.0, 3.0, 1.5], label=["owl", "tit", "wren", "owl"]).to_parquet(tmp_path / "x.parquet")
    assert "numbers" not in run(*words, "x.parquet", "-m", "PL-kNN", "-p", "n_neighbors=1").stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mipl resolve x.csv --method PL-", ["PL-kNN", "PL-AGGD"]),
        ("mipl fit x.csv --missing d", ["drop"]),
        ("mipl re", ["resolve"]),
        ("mipl explain --instance-", ["--instance-id"]),
    ],
)
def test_the_shell_completes_commands_options_and_their_values(words, expected):
    asked = {"_MIPL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "mipl"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == expected
