"""The command line, run as a user runs it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from typing import NamedTuple

import pytest

import mipl
from mipl.cli import main

HEAVY = ("torch", "matplotlib", "dask", "sklearn", "pyarrow", "pandas", "scipy")


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_words(*words: object, code: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["mipl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = Done(*capsys.readouterr())
        assert ended.value.code == code, told.stderr + told.stdout
        return told

    return run_words


def test_import_and_help_stay_light():
    for program in ("import mipl", "import mipl.cli"):
        loaded = subprocess.run(
            [sys.executable, "-c", f"import sys; {program}; print([m for m in {HEAVY} if m in sys.modules])"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert loaded.stdout.strip() == "[]", program


def test_build_fit_predict_and_resolve_work_together(run, tmp_path):
    run("data", "build", "digits", "--r", 2, "--out", "d.parquet")
    run("fit", "d.parquet", "--method", "PL-kNN", "-p", "k=3", "-p", "embed=maxmin", "--out", "m.mipl")
    run("predict", "m.mipl", "d.parquet", "--out", "p.csv")
    run("resolve", "d.parquet", "--model", "m.mipl", "--out", "labels.csv")
    ds, model = mipl.load(tmp_path / "d.parquet"), mipl.load_model(tmp_path / "m.mipl")
    assert (model.k, model.embed) == (3, "maxmin")
    with (tmp_path / "p.csv").open() as file:
        predicted = [row["predicted"] for row in csv.DictReader(file)]
    assert predicted == model.predict(ds.bags).tolist()
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    posterior = model.resolve(ds.bags, [ds.classes[c].tolist() for c in ds.candidates])
    assert [row["label"] for row in rows] == ds.classes[posterior.argmax(axis=1)].tolist()
    assert all(row["label"] in row["candidates"].split("|") for row in rows)


def test_json_is_for_machines(run, tmp_path):
    built = json.loads(run("data", "build", "digits", "--out", "d.npz", "--json").stdout)
    assert built == json.loads(run("data", "info", "d.npz", "--json").stdout)
    assert built == mipl.load("digits", r=1).summary()
    listed = json.loads(run("data", "list", "--json").stdout)
    assert "digits" in [entry["name"] for entry in listed]
    assert [entry["name"] for entry in json.loads(run("methods", "--json").stdout)] == list(mipl.methods())
    fitted = json.loads(run("fit", "d.npz", "-m", "pl-knn", "--out", "m.mipl", "--json").stdout)
    assert fitted["bags"] == 150
    answer = json.loads(run("predict", "m.mipl", "d.npz", "--json").stdout)
    assert len(answer["predictions"]) == 150
    assert answer["accuracy"] == pytest.approx(
        mipl.load_model(tmp_path / "m.mipl").score(mipl.load("digits").bags, mipl.load("digits").labels)
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "none.parquet", "--out", "m.mipl"), "mipl: no such file: none.parquet"),
        (("data", "build", "mnits", "--out", "x.npz"), "mipl: unknown data set 'mnits'; the data sets are digits"),
        (("data", "build", "digits", "--out", "x.xls"), "mipl: cannot tell the format of x.xls"),
        (("fit", "digits", "--method", "SVM", "--out", "m.mipl"), "mipl: unknown method 'SVM'; the methods are"),
        (("fit", "digits", "-m", "PL-kNN", "-p", "k", "--out", "m.mipl"), "mipl: cannot read the parameter 'k'"),
        (("predict", "none.mipl", "digits"), "mipl: no such model file: none.mipl"),
    ],
)
def test_a_users_error_is_one_line_and_code_2(run, tmp_path, words, message):
    done = run(*words, code=2)
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(run, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mipl", "fit", "none.parquet", "--out", "m.mipl", "--debug"])
    with pytest.raises(mipl.DataError, match=r"no such file: none\.parquet"):
        main()


def test_the_installed_program_ends_with_code_2_on_a_users_error(tmp_path):
    words = [sys.executable, "-m", "mipl", "fit", "none.parquet", "--out", "m.mipl"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "mipl: no such file: none.parquet\n")


def test_version_and_missing_words(run):
    assert run("--version").stdout == f"mipl {mipl.__version__}\n"
    assert "--out" in run("fit", "digits", code=2).stderr


def test_quiet_says_nothing(run):
    done = run("fit", "digits", "-m", "PL-kNN", "--out", "m.mipl", "--quiet")
    assert done.stdout + done.stderr == ""


def test_the_demo_tells_the_whole_story(run, tmp_path):
    told = run("demo").stdout
    assert "resolved" in told
    assert "by chance" in told
    assert (tmp_path / "demo" / "resolved.png").read_bytes().startswith(b"\x89PNG")
    assert mipl.load_model(tmp_path / "demo" / "model.mipl").classes_.tolist() == ["0", "2", "4", "6", "8"]
