"""Commands on a disk without room: one line and code 2, and nothing half written."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_room() -> Iterator[None]:
    """Let no file of this process or its children grow above 8 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "digits", "-m", "PL-kNN", "--out", "m.mipl"),
        ("data", "build", "digits", "--out", "x.parquet"),
        ("resolve", "digits", "-m", "PL-kNN", "--out", "x.csv"),
        ("resolve", "digits", "-m", "PL-kNN", "--out", "x.xlsx"),
        ("data", "show", "digits", "--out", "x.pdf"),
        ("bench", "run", "quick", "--method", "PL-kNN", "--splits", "1"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_code_2(run, no_room, tmp_path, words, monkeypatch):
    later: list[object] = []  # what Python would print of objects that cannot be closed
    monkeypatch.setattr(sys, "unraisablehook", later.append)
    told = run(*words, "--quiet", code=2).stderr
    assert told.startswith("mipl: bench.sqlite cannot" if words[0] == "bench" else f"mipl: cannot write {words[-1]}: ")
    assert len(told.splitlines()) == 1
    gc.collect()
    assert not later
    assert not [file for file in tmp_path.iterdir() if "bench.sqlite" not in file.name]
