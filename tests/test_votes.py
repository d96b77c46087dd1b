"""One bag's candidates as a user writes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipl.errors import DataError
from mipl.votes import as_label, join_votes, read_entry, split_vote

names = st.lists(
    st.text("ab:. 1", min_size=1, max_size=5).filter(lambda name: name == name.strip()),
    min_size=1,
    max_size=4,
    unique=True,
)
weight = st.floats(0, allow_infinity=False, allow_nan=False)


@given(names, st.data())
def test_what_join_votes_writes_is_read_to_the_last_bit(labels, data):
    weights = data.draw(st.lists(weight, min_size=len(labels), max_size=len(labels)))
    read = read_entry("bag 0", join_votes(labels, weights))
    assert read == dict(zip(labels, weights, strict=True))


@given(names)
def test_names_that_look_like_votes_are_names_where_the_classes_are_known(labels):
    assert read_entry("bag 0", "|".join(labels), classes=[*labels, "other"]) == labels


@pytest.mark.parametrize(
    ("text", "classes", "expected"),
    [
        ("owl|wren", None, ["owl", "wren"]),
        (" owl | wren ", None, ["owl", "wren"]),
        ("owl : 3|wren: 1", None, {"owl": 3.0, "wren": 1.0}),
        ("owl:3|wren", None, ["owl:3", "wren"]),  # rule 3: not every part has a number
        ("note: owl|wren", None, ["note: owl", "wren"]),
        ("chr:1|chr:2", ["chr:1", "chr:2"], ["chr:1", "chr:2"]),  # rule 1
        ("chr:1:5", ["chr:1", "chr:2"], {"chr:1": 5.0}),  # rule 2 with the last colon
        ("chr:1|owl", ["chr", "chr:1", "owl"], ["chr:1", "owl"]),
        ("chr:1|owl:2", ["chr", "chr:1", "owl"], {"chr": 1.0, "owl": 2.0}),  # rule 2: not every part is a class
        ("chr:7", ["chr", "chr:1"], {"chr": 7.0}),
        (":3", None, [":3"]),
        ("owl:1_0", None, ["owl:1_0"]),
        ("12:00", ["noon"], {"12": 0.0}),
        ("owl:1e-3", None, {"owl": 0.001}),
    ],
)
def test_the_rule_for_colons(text, classes, expected):
    assert read_entry("bag 0", text, classes) == expected


def test_a_label_with_two_weights_is_refused_with_the_remedy():
    with pytest.raises(DataError, match=r"bag 'x': 'chr:1\|chr:2' gives a label two weights; if 'chr:1' is a class"):
        read_entry("bag 'x'", "chr:1|chr:2")


def test_a_mapping_may_leave_labels_out_by_none():
    assert read_entry("bag 0", {"owl": np.float32(2), "wren": None}) == {"owl": 2.0, "wren": 0.0}


@pytest.mark.parametrize("number", ["", "day", "٣", "1 000", "0x1"])
def test_only_plain_numbers_are_weights(number):
    assert split_vote(f"owl:{number}") is None


def test_labels_of_more_than_64_bits_are_refused():
    with pytest.raises(DataError, match=r"the class name 1180591620717411303424 is an integer of more than 64 bits"):
        as_label("the class name", 2**70)
    assert as_label("the class name", -(2**63)) == -(2**63)
