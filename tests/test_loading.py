"""mipl.load: a name or files, and clear words for anything else."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mipl
from mipl.errors import DataError


def test_a_name_takes_the_options_of_its_builder():
    assert mipl.load("digits", r=2, seed=3).candidates.sum(axis=1).max() == 3
    with pytest.raises(DataError, match="digits has no option 'speed'"):
        mipl.load("digits", speed=1)


def test_what_is_neither_a_name_nor_a_file_is_said(tmp_path):
    with pytest.raises(DataError, match="'digts' is neither a data set"):
        mipl.load("digts")
    with pytest.raises(DataError, match="no such file"):
        mipl.load(tmp_path / "x.csv")
    (tmp_path / "x.doc").touch()
    with pytest.raises(DataError, match="cannot tell the format"):
        mipl.load(tmp_path / "x.doc")
    with pytest.raises(DataError, match="no files"):
        mipl.load([])


def test_the_library_logs_under_its_name_and_prints_nothing_by_itself(tmp_path):
    (tmp_path / "x.csv").write_text("bag,candidates,note,w\n1,a|b,n,1\n2,a,n,2\n")
    program = "import mipl; mipl.load('x.csv')"
    for more, words in (("", ""), ("import logging; logging.basicConfig(level=20); ", "left out: 'note' (text)")):
        done = subprocess.run(
            [sys.executable, "-c", more + program], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == ""
        assert words in done.stderr
        assert bool(words) == bool(done.stderr)


def test_a_data_set_among_files_is_told_to_be_named_alone():
    with pytest.raises(mipl.MIPLError, match="'digits' is a data set of its own, not one of several files"):
        mipl.load(["digits", "mnist"])


def test_a_near_miss_of_a_file_or_data_set_is_answered_with_the_right_name(tmp_path):
    (tmp_path / "birds.csv").write_text("bag_id,candidates,x\na,owl|wren,1\nb,owl,2\n")
    for read in (mipl.load, lambda name: mipl.check(name).problems[0].message):
        for name, meant in ((tmp_path / "bird.csv", repr(str(tmp_path / "birds.csv"))), ("digit", "'digits'")):
            try:
                told = read(name)
            except mipl.DataError as error:
                told = str(error)
            assert f"did you mean {meant}?" in told
