"""One description of the options of what reads files."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import typer.main

import mipl
from mipl.cli import app
from mipl.io.options import OPTIONS, Columns

DOCS = Path(__file__).parents[2] / "docs" / "files.md"


def test_python_the_command_line_and_the_docs_have_the_same_options():
    assert {each.name for each in fields(Columns)} == {*OPTIONS, "model_features", "remembered"}
    assert set(OPTIONS) <= inspect.signature(mipl.load).parameters.keys()
    command = typer.main.get_command(app).commands["fit"]
    flags = {flag: option.help for option in command.params for flag in option.opts}
    docstring = " ".join((inspect.unwrap(mipl.load).__doc__ or "").split())
    table = DOCS.read_text(encoding="utf-8")
    for name, (_, words) in OPTIONS.items():
        assert words in docstring
        assert flags[f"--{name.replace('_', '-')}"] == words
        assert f"--{name.replace('_', '-')}`" in table
