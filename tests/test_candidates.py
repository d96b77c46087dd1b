"""Candidate sets in every form a user may have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mipl.candidates import (
    augment_candidates,
    label_names,
    parse_candidates,
    parse_labels,
    parse_votes,
    uniform_weights,
)
from mipl.errors import DataError

label_sets = st.one_of(
    st.lists(st.sets(st.integers(-5, 30), min_size=1, max_size=4), min_size=2, max_size=8),
    st.lists(st.sets(st.text("abc|xyz é", min_size=1, max_size=4), min_size=1, max_size=4), min_size=2, max_size=8),
).filter(lambda sets: len(set().union(*sets)) > 1)


@given(label_sets, st.sampled_from([list, tuple, set, lambda s: np.array(sorted(s))]))
def test_sets_of_labels_become_a_mask_over_sorted_classes(sets, form):
    mask, classes = parse_candidates([form(s) for s in sets])
    assert classes.tolist() == sorted(set().union(*sets))
    assert [set(classes[row].tolist()) for row in mask] == [set(s) for s in sets]


def test_a_mask_keeps_its_columns_and_names():
    given_mask = np.array([[1, 0, 1], [0, 1, 0]])
    mask, classes = parse_candidates(given_mask)
    assert mask.dtype == bool
    assert classes.tolist() == [0, 1, 2]
    _, named = parse_candidates(given_mask, classes=["c", "a", "b"])
    assert named.tolist() == ["c", "a", "b"]
    assert np.array_equal(parse_candidates(given_mask.astype(bool).tolist())[0], mask)


def test_lists_of_equal_length_are_labels_and_not_a_mask():
    mask, classes = parse_candidates([[0, 1], [1, 2]])
    assert classes.tolist() == [0, 1, 2]
    assert mask.tolist() == [[True, True, False], [False, True, True]]


def test_a_frame_column_of_joined_names_is_split():
    mask, classes = parse_candidates(pd.Series(["owl|wren", "wren", "lark|owl"]))
    assert classes.tolist() == ["lark", "owl", "wren"]
    assert mask.sum(axis=1).tolist() == [2, 1, 2]


def test_single_labels_are_plain_supervision():
    mask, classes = parse_candidates(np.array(["b", "a", "b"]))
    assert classes.tolist() == ["a", "b"]
    assert mask.tolist() == [[False, True], [True, False], [False, True]]


def test_augmentation_adds_a_class_that_everyone_may_have():
    augmented = augment_candidates(np.array([[True, False], [True, True]]))
    assert augmented.tolist() == [[True, False, True], [True, True, True]]
    np.testing.assert_allclose(uniform_weights(augmented), [[1 / 2, 0, 1 / 2], [1 / 3, 1 / 3, 1 / 3]])


@given(st.lists(st.sampled_from(["owl", "wren", None]), min_size=1))
def test_labels_and_their_indices_are_inverse(labels):
    classes = np.array(["wren", "owl"])
    assert label_names(parse_labels(labels, classes), classes) == labels


def test_integers_are_indices_only_where_classes_have_names():
    assert parse_labels([1, 0, -1], np.array(["b", "a"])).tolist() == [1, 0, -1]
    assert parse_labels([4, 2], np.array([2, 4])).tolist() == [1, 0]
    with pytest.raises(DataError, match="bag 1 has the label 1"):
        parse_labels([4, 1], np.array([2, 4]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ids: parse_candidates([{"a"}, {"b", "z"}], ["a", "b"], bag_ids=ids), "bag 'y' has the candidate 'z'"),
        (lambda ids: parse_candidates([{"a"}, {0.5}], bag_ids=ids), "bag 'y': the label 0.5 is neither"),
        (lambda ids: parse_candidates(["a|b", "a|"], bag_ids=ids), r"bag 'y': the candidate list 'a\|' has an empty"),
        (
            lambda ids: parse_candidates([{"a", "b"}], bag_ids=ids),
            "1 candidate sets for 2 bags; there must be one per bag",
        ),
        (lambda ids: parse_labels(["a", "z"], np.array(["a", "b"]), bag_ids=ids), "bag 'y' has the label 'z'"),
        (lambda ids: parse_labels(["a"], np.array(["a", "b"]), bag_ids=ids), "1 labels for 2 bags; there must be one"),
    ],
)
def test_errors_call_bags_by_their_ids(call, message):
    for ids in (["x", "y"], np.array(["x", "y"])):
        with pytest.raises(DataError, match=message):
            call(ids)


def test_missing_labels_are_unknown_in_every_spelling():
    classes = np.array(["owl", "wren"])
    for missing in (None, float("nan"), -1):
        assert parse_labels([missing, "wren"], classes).tolist() == [-1, 1]
    assert parse_labels(pd.Series([None, "wren"]), classes).tolist() == [-1, 1]
    assert parse_labels(pd.Series([2.0, None]), np.array([2, 4])).tolist() == [0, -1]


# ---------------------------------------------------------------- votes and weights, nothing known

vote_matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 5)),
    elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0, 1e-300, 1e300]),
).filter(lambda weights: weights.any(axis=1).all() and not np.isin(weights, (0, 1)).all())


@given(vote_matrices)
def test_a_matrix_mappings_and_strings_say_the_same(weights):
    names = [f"class {c}" for c in range(weights.shape[1])]
    mappings = [dict(zip(names, row.tolist(), strict=True)) for row in weights]
    strings = ["|".join(f"{label}:{weight!r}" for label, weight in row.items() if weight) for row in mappings]
    for form in (weights, mappings, strings, pd.Series(mappings), pd.Series(strings), pd.DataFrame(weights)):
        mask, read, classes = parse_votes(form, names)
        assert classes.tolist() == names
        assert np.array_equal(mask, weights > 0)
        assert np.array_equal(read, weights)


def test_zero_is_no_candidate_but_a_class():
    mask, weights, classes = parse_votes([{"owl": 2, "wren": 0}, {"owl": 1}])
    assert classes.tolist() == ["owl", "wren"]
    assert mask.tolist() == [[True, False], [True, False]]
    assert weights.tolist() == [[2, 0], [1, 0]]


def test_ones_in_a_matrix_are_a_mask_and_in_a_mapping_weights():
    assert parse_votes(np.eye(2))[1] is None
    assert parse_votes([{"a": 1}, {"b": 1}])[1].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA])
def test_of_a_missing_entry_every_class_is_a_candidate(missing):
    mask, weights, _ = parse_votes([["a", "b"], missing, ["c"]])
    assert mask.tolist() == [[True, True, False], [True, True, True], [False, False, True]]
    assert weights is None
    assert parse_votes([{"a": 5}, missing, "c"])[1].tolist() == [[5, 0], [0.5, 0.5], [0, 0.5]]
    assert parse_votes(pd.Series([2, missing, 4], dtype="Int64"))[0].tolist() == [[1, 0], [1, 1], [0, 1]]
    assert parse_votes([missing, missing], classes=["a", "b"])[0].all()


def test_integers_that_a_gap_turned_into_floats_are_labels():
    mask, _, classes = parse_votes(pd.Series([2, None, 4]))
    assert classes.tolist() == [2, 4]
    assert mask.tolist() == [[True, False], [True, True], [False, True]]


def test_where_nothing_at_all_is_known_the_classes_must_be_given():
    with pytest.raises(DataError, match="no bag has a candidate label; pass the classes"):
        parse_votes([None, None])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([[2, 1], [0, 0]]), "bag 'y' has no candidate label"),
        (np.array([[2, 1], [1, -1]]), "bag 'y', class 1: the weight -1"),
        (np.array([[2, 1], [np.nan, 1]]), "bag 'y', class 0: the weight nan"),
        (np.array([[2, 1], [np.inf, 1]]), "bag 'y', class 0: the weight inf"),
        ([{"a": 1}, {"b": float("nan")}], "bag 'y': the weight nan of the candidate 'b'"),
        ([{"a": 1}, {"b": True}], "bag 'y': the weight True of the candidate 'b' is not a number"),
        (["a:1|b:2", "a:0"], "bag 'y' has no candidate label"),
        (["a:1|b:2", "a:inf"], "bag 'y': the weight inf of the candidate 'a'"),
    ],
)
def test_weights_that_cannot_be_used_name_their_bag(weights, message):
    with pytest.raises(DataError, match=message):
        parse_votes(weights, bag_ids=["x", "y"])
