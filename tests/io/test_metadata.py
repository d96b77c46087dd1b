"""Metadata of mipl in a file: every value is checked, and the message names its key."""

from __future__ import annotations

import json

import pytest
from hostile_files import ODD
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", [1, "a"]),
        ("classes", ["a", "a"]),
        ("classes", []),
        ("classes", [True]),
        ("classes", [2**63]),
        ("classes", ["\ud800"]),
        ("classes", ["a\0"]),
        ("background", [1]),
        ("background", 0.5),
        ("instance_shape", [0, 4]),
        ("instance_shape", ["4"]),
        ("instance_shape", 4),
        ("feature_names", [1]),
        ("feature_names", "x"),
        ("name", 3),
        ("description", None),
        ("weights", 1),
        ("groups", ["a"]),
        ("format", "1"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_key(key: str, value: object):
    with pytest.raises(DataError, match=rf"x: the metadata of mipl say '{key}'"):
        read_metadata(json.dumps({**GOOD, key: value}), "x")


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"x"', "[" * 100_000, b"\xff\xfe{"])
def test_what_is_no_object_is_refused(text: str | bytes):
    with pytest.raises(DataError, match="x: the metadata of mipl are"):
        read_metadata(text, "x")


def test_a_newer_format_is_told():
    with pytest.raises(DataError, match="newer mipl"):
        read_metadata('{"format": 2}', "x")


@given(st.dictionaries(st.sampled_from([*GOOD, "weights", "bag_id", "groups"]), st.sampled_from(ODD)))
def test_any_metadata_are_read_or_refused_in_one_line(extra):
    told = ""
    try:
        assert read_metadata(json.dumps(extra), "x").keys() == extra.keys()
    except DataError as error:
        told = str(error)
    assert len(told.splitlines()) <= 1
    assert told.encode().decode() == told
