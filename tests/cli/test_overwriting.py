"""Inputs and outputs of a command are never one file; tests/hostile/test_overwriting.py tries every command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from command_lines import LINES, make_folder

from mipl.cli import app

#: Options of text that are no paths, and two folders.
NO_FILES = {
    "background", "bag", "candidates", "candidates_sep", "dataset", "decimal", "features", "form", "ignore",
    "instance_id", "kind", "label", "method", "missing", "name", "option", "param", "reference", "scheduler", "sep",
}  # fmt: skip
FOLDERS = {("demo", "out"), ("bench report", "results")}


@pytest.fixture
def folder(run: Callable[..., object], tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@contextmanager
def descriptor(number: int, path: Path, flags: int) -> Iterator[None]:
    """Let a descriptor of this process be a file."""
    kept, opened = os.dup(number), os.open(path, flags)
    os.dup2(opened, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(opened)
        os.close(kept)


def parsed(command: typer.core.TyperGroup, words: list[str]) -> tuple[str, dict[str, object]]:
    """The name of a command and its parameters."""
    name = []
    while hasattr(command, "commands"):
        name.append(words[0])
        command, words = command.commands[words[0]], words[1:]
    return " ".join(name), command.make_context(name[-1], words, resilient_parsing=True).params


def texts_of(group: typer.Typer, before: str = "") -> Iterator[tuple[str, str]]:
    """All parameters of all commands that a path could be."""
    for each in group.registered_groups:
        yield from texts_of(each.typer_instance, f"{each.typer_instance.info.name or each.name} ")
    for command in group.registered_commands:
        for name, kind in get_type_hints(command.callback).items():
            if re.search(r"\b(str|Path)\b", str(kind)):
                yield f"{before}{command.name or command.callback.__name__}", name


def test_every_path_that_a_command_takes_is_tried():
    command, tried = typer.main.get_command(app), set(FOLDERS)
    for line in LINES:
        name, given = parsed(command, line.words.split())
        tried |= {(name, option) for option, value in given.items() if "<" in str(value) or ">" in str(value)}
    assert {(name, option) for name, option in texts_of(app) if option not in NO_FILES} == tried


def test_standard_streams_are_files_too(run, folder):
    kept = (folder / "d.csv").read_bytes()
    with descriptor(0, folder / "d.csv", os.O_RDONLY):
        told = run("resolve", "-", "--out", "./d.csv", code=2).stderr
    assert told == "mipl: cannot write d.csv: this command reads it as standard input; choose another file or folder\n"
    with descriptor(1, folder / "d.csv", os.O_WRONLY | os.O_APPEND):
        assert "cannot write -: this command reads it as d.csv" in run("resolve", "d.csv", "--out", "-", code=2).stderr
    assert (folder / "d.csv").read_bytes() == kept
    told = run("resolve", "d.csv", "--out", "-", "--instances", "-", code=2).stderr
    assert "two outputs would both be written to -;" in told


@pytest.mark.parametrize(
    ("words", "refused", "allowed"),
    [
        ("resolve in -m PL-kNN --out", "in/answers.csv", "in/_answers.csv"),
        ("resolve in -m PL-kNN --out", "here/in/deep/answers.parquet", "here/answers.parquet"),
        ("resolve photos --patch 4 -m PL-kNN --out", "photos/answers.csv", "photos/answers.parquet"),
        ("resolve here/in/*.csv -m PL-kNN --out", "here/in/answers.csv", "in/deep/answers.csv"),
        ("data show in --out", "in/p.png", "in/p.svg"),
        ("data show photos --patch 4 --out", "photos/p.png", "photos/p.svg"),
    ],
)
def test_a_file_that_would_be_taken_for_data_the_next_time_is_refused(run, folder, words, refused, allowed):
    (folder / "here").symlink_to(".")
    told = run(*words.split(), refused, code=2).stderr
    assert told.startswith(f"mipl: cannot write {refused}: whoever reads ")
    assert not (folder / refused).exists()
    run(*words.split(), allowed)
    run(*words.split(), allowed)


def test_raw_files_of_a_data_set_are_inputs(run, folder, monkeypatch):
    monkeypatch.setenv("MIPL_DATA", str(folder / "raw"))
    raw = folder / "raw" / "birdsong" / "birdsong.npz"
    raw.parent.mkdir(parents=True)
    raw.write_bytes(b"raw")
    out = "raw/birdsong/birdsong.npz"
    for name in ("birdsong", "birdsong-natural"):
        told = run("data", "build", name, "--out", out, code=2).stderr
        assert told.startswith(f"mipl: cannot write {out}: this command reads it as {raw}; choose another")
    assert raw.read_bytes() == b"raw"


def test_a_data_set_by_name_is_no_folder_of_that_name(run, folder):
    (folder / "digits").mkdir()
    for _ in range(2):
        run("resolve", "digits", "-m", "PL-kNN", "--out", "digits/labels.csv")


def test_a_page_of_results_from_their_export_leaves_the_export_alone(run, folder):
    export = folder / "res" / "results.csv"
    edited = (folder / "made.csv").read_bytes().replace(b"\n", b"\r\n")
    export.write_bytes(edited)
    run("bench", "report", "made.toml", "--store", "res/results.csv", "--page", "p.md", "--results", "res")
    assert export.read_bytes() == edited
    assert "PL-kNN" in (folder / "p.md").read_text()
