"""Metadata of mipl in a file."""

from __future__ import annotations

import json

import pytest

from mipl.errors import DataError
from mipl.io.table import read_metadata

GOOD = {
    "format": 1,
    "classes": ["b", "a"],
    "background": "a",
    "instance_shape": [2, 2],
    "feature_names": ["x", "y", "z", "w"],
    "name": "n",
    "description": "",
    "later": {"any": "thing"},
}


def test_what_mipl_writes_is_read():
    assert read_metadata(json.dumps(GOOD), "x") == GOOD


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"x"', "[" * 100_000, b"\xff\xfe{"])
def test_what_is_no_object_is_refused(text: str | bytes):
    with pytest.raises(DataError, match="x: the metadata of mipl are"):
        read_metadata(text, "x")


def test_a_newer_format_is_told():
    with pytest.raises(DataError, match="newer mipl"):
        read_metadata('{"format": 2}', "x")
