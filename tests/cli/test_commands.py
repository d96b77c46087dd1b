"""What holds for every command: help with an example and defaults, JSON alone, and silence."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import mipl
from mipl.__main__ import main as program
from mipl.bench import Store, load_suite
from mipl.bench.store import Outcome
from mipl.cli import app

SUITE = """
name = "made"
datasets = ["digits"]
splits = 3
scores = ["accuracy"]
methods = ["PL-kNN", { method = "PL-kNN", label = "near", params = { n_neighbors = 1 } }]
"""
#: Words for each command, in a folder with a data set file, a model and a store of results.
WORDS: dict[str, tuple[str, ...]] = {
    "demo": ("--method", "PL-kNN", "--out", "out"),
    "check": ("d.csv",),
    "methods": (),
    "fit": ("d.csv", "--method", "PL-kNN", "--out", "new.mipl"),
    "info": ("m.mipl",),
    "predict": ("m.mipl", "d.csv"),
    "explain": ("m.mipl", "d.csv"),
    "resolve": ("d.csv", "--method", "PL-kNN"),
    "data list": (),
    "data build": ("digits", "--out", "b.npz"),
    "data show": ("d.csv", "--out", "d.png", "--bags", "1"),
    "data info": ("d.csv",),
    "bench run": ("made.toml", "--store", "made.sqlite", "--any-code"),
    "bench import": ("made.sqlite", "--store", "other.sqlite"),
    "bench status": ("made.toml", "--store", "made.sqlite"),
    "bench table": ("made.toml", "--store", "made.sqlite"),
    "bench figure": ("made.toml", "overview", "--store", "made.sqlite", "--out", "o.svg"),
    "bench report": ("made.toml", "--store", "made.sqlite", "--page", "r.md", "--results", "."),
}
#: Commands whose result is a file: with --quiet they print nothing at all.
SILENT = {"fit", "data build", "data show", "bench run", "bench import", "bench figure", "bench report"}


NAMES = ["größe", "名", "c", "d", "e"]


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """Every command of the program by its words."""
    found = {}
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found |= commands(command, f"{before}{name} ") if inner else {f"{before}{name}": command}
    return found


ALL = commands(typer.main.get_command(app))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made")
    digits = mipl.load("digits", r=1)[:24]
    ds = mipl.MIPLDataset(digits.bags, digits.candidates, labels=digits.labels, classes=NAMES)
    ds.save(path / "d.csv")
    mipl.make("PL-kNN").fit(ds).save(path / "m.mipl")
    (path / "made.toml").write_text(SUITE)
    with Store(path / "made.sqlite") as opened:
        opened.begin_run({"processors": 1, "platform": "made up"})
        with opened.transaction():
            for place, cell in load_suite(str(path / "made.toml")).cells().items():
                opened.claim(cell)
                scores = {"accuracy": 0.5 + place.split / 10}
                opened.finish(cell, Outcome(scores=scores, fit_seconds=1.0, predict_seconds=1.0))
    return path


@pytest.fixture
def folder(run, tmp_path: Path, made: Path) -> Path:
    """The folder in which commands run, with those files."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_every_command_is_tried_here():
    assert WORDS.keys() == ALL.keys()


@pytest.mark.parametrize("name", ["", "data", "bench", *ALL])
def test_h_shows_what_the_command_does_and_an_example(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    short, long = run(*name.split(), "-h").stdout, run(*name.split(), "--help").stdout
    assert short == long
    assert f"Usage: mipl {name}".strip() in short
    if name in ALL:
        example = re.search(rf"mipl {name}\b(?!:).*", short[short.rindex("Example") :])
        assert example, short
        known = {option for parameter in ALL[name].params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", example[0])) <= known


@pytest.mark.parametrize("name", ALL)
def test_every_option_has_words_and_tells_its_default(name):
    for parameter in ALL[name].params:
        if parameter.name == "help" or parameter.param_type_name == "argument":
            continue
        assert parameter.help, parameter.name
        shown = (
            parameter.required or parameter.is_flag or parameter.default is not None or "Default: " in parameter.help
        )
        assert shown, f"mipl {name}: {parameter.opts[0]} does not say what happens without it"


@pytest.mark.parametrize("name", ALL)
def test_an_option_of_one_value_that_is_given_twice_is_refused(name):
    for parameter in ALL[name].params:
        if parameter.param_type_name == "option" and not parameter.is_flag and not parameter.multiple:
            with pytest.raises(Exception, match=f"{parameter.opts[0]}.* is given 2 times"):
                ALL[name].make_context(name, [parameter.opts[0], "1", parameter.opts[-1], "2"])


def test_options_of_several_values_and_flags_may_be_repeated(run):
    ALL["check"].make_context("check", ["d.csv", "--ignore", "a", "--ignore", "b", "--json", "--json"])
    told = run("check", "d.csv", "--candidates", "a", "--candidates", "b", code=2)
    assert "--candidates is given 2 times" in told.stderr


@pytest.mark.parametrize("name", ALL)
def test_json_is_one_document_on_standard_output_and_nothing_else(run, folder, name):
    done = run(*name.split(), *WORDS[name], "--json")
    assert json.loads(done.stdout) is not None
    assert done.stderr == ""


@pytest.mark.parametrize("name", ALL)
def test_quiet_prints_results_only(run, folder, name):
    done = run(*name.split(), *WORDS[name], "--quiet")
    assert done.stderr == ""
    assert (done.stdout == "") == (name in SILENT)


@pytest.mark.parametrize(
    ("name", "encoding"), [*((name, "ascii") for name in ALL), ("check", "latin-1"), ("resolve", "latin-1")]
)
def test_what_a_terminal_cannot_show_is_spelled_out(folder, name, encoding, monkeypatch):
    streams = {each: io.TextIOWrapper(io.BytesIO(), encoding=encoding) for each in ("stdout", "stderr")}
    monkeypatch.setattr("mipl.__main__.catch_signals", lambda: None)
    monkeypatch.setattr(sys, "argv", ["mipl", *name.split(), *WORDS[name]])
    for each, stream in streams.items():
        monkeypatch.setattr(sys, each, stream)
    with pytest.raises(SystemExit) as ended:
        program()
    assert ended.value.code == 0
    told = "".join(stream.buffer.getvalue().decode(encoding) for stream in streams.values())
    if name in ("check", "predict", "explain", "resolve", "info"):
        assert ("größe" if encoding == "latin-1" else r"gr\xf6\xdfe") in told
        assert r"\u540d" in told


@pytest.mark.parametrize(
    ("closed", "words", "told"),
    [
        ([0], ["check", "-"], "standard input is empty"),
        ([2], ["check", "d.csv"], "usable"),
        ([0, 1, 2], ["data", "show", "d.csv", "--out", "p.png"], ""),
    ],
)
def test_a_closed_standard_stream_is_the_null_device_and_pictures_need_no_screen(folder, closed, words, told):
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    program = [sys.executable, "-m", "mipl", *words]
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, preexec_fn=close, check=False
    )
    assert done.returncode == (1 if closed == [0] else 0)
    assert told in done.stdout
    assert done.stderr == ""
    assert (folder / "p.png").is_file() == ("show" in words)


@pytest.mark.parametrize("name", ["fit", "data show", "bench import", "bench figure"])
def test_what_is_written_is_told_on_standard_error(run, folder, name):
    done = run(*name.split(), *WORDS[name])
    assert done.stderr
    assert done.stdout == ""


def test_failed_cells_of_a_run_give_code_1(run, folder, monkeypatch):
    monkeypatch.setattr("mipl.bench.run", lambda *_, **__: 2)
    done = run("bench", "run", "made.toml", "--store", "made.sqlite", "--json", code=1)
    assert json.loads(done.stdout) == {"suite": "made", "cells": 6, "failed": 2, "store": "made.sqlite"}


def test_bench_tables_are_the_same_numbers_in_json(run, folder):
    rows = json.loads(run("bench", "table", "made.toml", "--store", "made.sqlite", "--json").stdout)
    assert [(row["method"], row["n"]) for row in rows] == [("PL-kNN", 3), ("near", 3)]
    assert rows[0]["mean"] == pytest.approx(0.6)
    status = json.loads(run("bench", "status", "made.toml", "--store", "made.sqlite", "--json").stdout)
    assert [(m["method"], m["done"], m["to_run"], m["seconds"]) for m in status["methods"]] == [
        ("PL-kNN", 3, 0, 6.0),
        ("near", 3, 0, 6.0),
    ]


def test_the_exit_codes_are_in_the_help_and_in_the_documentation(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    told = run("-h").stdout
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for code in ("0", "1", "2", "130", "143"):
        assert re.search(rf"[:;] {code} [a-z']", told)
        assert f"\n| {code} |" in page


@pytest.mark.parametrize(
    ("words", "completed"), [("mipl da", {"data"}), ("mipl data sh", {"show"}), ("mipl fit --deb", set())]
)
def test_the_shell_completes_commands(words, completed):
    environment = {**os.environ, "_MIPL_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split()) - 1)
    done = subprocess.run([sys.executable, "-m", "mipl"], env=environment, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == completed


def test_mipl_data_that_does_not_exist_is_an_error(run, monkeypatch):
    monkeypatch.setenv("MIPL_DATA", "/no/such/folder")
    told = run("data", "build", "mnist", "--out", "x.npz", code=2).stderr
    assert told.startswith("mipl: MIPL_DATA is '/no/such/folder', which is not a folder")


def test_the_log_of_the_library_is_shown_on_request_only(run, folder):
    words = ("fit", "d.csv", "-m", "PL-kNN", "-o", "x.mipl", "--json")
    log = logging.getLogger("mipl")
    try:
        assert run(*words).stderr == ""
        assert "mipl.base: PL-kNN: fitted on 24 bags" in run("-v", *words).stderr
        assert "mipl.io.atomic: wrote " in run("-vv", *words).stderr
    finally:
        log.handlers[1:] = []
        log.setLevel(logging.NOTSET)
