"""Data sets: selection, splits, description."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mipl
from mipl.bags import Bags
from mipl.dataset import MIPLDataset, split_order
from mipl.errors import DataError


@pytest.fixture(scope="module")
def digits() -> MIPLDataset:
    return mipl.load("digits", r=2, seed=1)


def test_a_selection_keeps_everything_of_its_bags(digits):
    index = np.array([5, 2, 140])
    part = digits[index]
    for k, i in enumerate(index):
        assert np.array_equal(part.bags[k], digits.bags[i])
        rows = slice(digits.bags.offsets[i], digits.bags.offsets[i + 1])
        mine = slice(part.bags.offsets[k], part.bags.offsets[k + 1])
        assert np.array_equal(part.instance_labels[mine], digits.instance_labels[rows])
    assert np.array_equal(part.labels, digits.labels[index])
    assert np.array_equal(part.candidates, digits.candidates[index])
    assert part.bag_ids.tolist() == index.tolist()
    assert len(digits[3]) == 1
    assert digits[10:20].equals(digits[np.arange(10, 20)])


def test_labels_of_integer_classes_survive_a_selection():
    ds = MIPLDataset(np.zeros((3, 1, 1)), [[2, 4], [4, 8], [8, 2]], labels=[4, 8, 2])
    assert ds.classes.tolist() == [2, 4, 8]
    assert ds.labels.tolist() == [1, 2, 0]
    assert ds[[2, 0]].labels.tolist() == [0, 1]


@pytest.mark.parametrize("train_size", [0.5, 0.7, 20])
def test_a_split_parts_the_bags(digits, train_size):
    train, test = digits.split(train_size, seed=3)
    assert len(train) == (train_size if isinstance(train_size, int) else round(150 * train_size))
    ids = np.concatenate([train.bag_ids, test.bag_ids])
    assert sorted(ids.tolist()) == digits.bag_ids.tolist()
    again, _ = digits.split(train_size, seed=3)
    other, _ = digits.split(train_size, seed=4)
    assert again.equals(train)
    assert not np.array_equal(other.bag_ids, train.bag_ids)


def test_the_split_of_a_seed_never_changes():
    assert split_order(8, 0).tolist() == [3, 2, 1, 6, 0, 7, 4, 5]


def test_a_stratified_split_keeps_the_classes_balanced(digits):
    train, test = digits.split(0.5, seed=0, stratify=True)
    assert np.bincount(train.labels).tolist() == [15] * 5
    assert np.bincount(test.labels).tolist() == [15] * 5


def test_summary_has_the_columns_of_the_papers_table(digits):
    sizes = [len(bag) for bag in digits.bags]
    assert digits.summary() == {
        "name": "digits",
        "bags": 150,
        "instances": sum(sizes),
        "max": max(sizes),
        "min": min(sizes),
        "dims": 64,
        "classes": 5,
        "candidates": 3.0,
        "positive": pytest.approx(100 * np.mean(digits.instance_labels < 5)),
    }


def test_a_long_frame_becomes_a_data_set():
    frame = pd.DataFrame(
        {
            "bag_id": ["x", "y", "x"],
            "candidates": [{"owl", "wren"}, {"wren"}, {"wren", "owl"}],
            "label": ["owl", None, "owl"],
            "f0": [1.0, 2.0, 3.0],
        }
    )
    ds = MIPLDataset.from_frame(frame)
    assert ds.bags.sizes.tolist() == [2, 1]
    assert ds.labels.tolist() == [0, -1]
    assert ds.bag_ids.tolist() == ["x", "y"]
    assert ds.bags.feature_names == ("f0",)
    frame["candidates"] = ["owl|wren", "wren", "owl|wren"]
    assert MIPLDataset.from_frame(frame).equals(ds)
    frame["candidates"] = ["owl|wren", "wren", "owl"]
    with pytest.raises(DataError, match=r"bag 'x', row 2: candidates .* all rows of a bag must agree"):
        MIPLDataset.from_frame(frame)


def test_a_data_set_cannot_be_changed_under_a_users_feet(digits):
    with pytest.raises(ValueError, match="read-only"):
        digits.candidates[0, 0] = True


@pytest.fixture
def birds() -> MIPLDataset:
    bags = Bags.from_list([np.full((2, 2), i) for i in range(4)], feature_names=["width", "height"])
    sets = [{"owl", "wren"}, {"wren"}, {"lark", "owl"}, {"owl"}]
    return MIPLDataset(bags, sets, labels=["owl", "wren", None, "owl"], bag_ids=["p", "q", "r", "s"])


def test_candidates_and_labels_are_given_by_name(birds):
    assert birds.candidate_sets() == [["owl", "wren"], ["wren"], ["lark", "owl"], ["owl"]]
    assert birds.label_names() == ["owl", "wren", None, "owl"]
    assert MIPLDataset(birds.bags, birds.candidates).label_names() is None
    again = MIPLDataset(
        birds.bags, birds.candidate_sets(), labels=birds.label_names(), classes=birds.classes, bag_ids=birds.bag_ids
    )
    assert again.equals(birds)


def test_feature_names_travel_through_selections_and_splits(birds):
    train, test = birds.split(0.5, seed=1)
    for part in (birds[1], birds[1:3], birds[[3, 0]], train, test):
        assert part.bags.feature_names == ("width", "height")


def test_equal_data_have_equal_feature_names(birds):
    nameless = Bags(birds.bags.instances, birds.bags.offsets)
    other = Bags(birds.bags.instances, birds.bags.offsets, feature_names=["width", "length"])
    for bags in (nameless, other):
        ds = MIPLDataset(bags, birds.candidates, labels=birds.labels, classes=birds.classes, bag_ids=birds.bag_ids)
        assert not ds.equals(birds)


# ---------------------------------------------------------------- votes, background, truth outside the candidates


@pytest.fixture
def voted() -> MIPLDataset:
    """Four bags: votes, a certain label, nothing known, and votes that miss the truth."""
    return MIPLDataset(
        np.arange(8.0).reshape(4, 2, 1),
        [{"owl": 3, "wren": 1}, "owl", None, "owl:2|silence:1"],
        labels=["wren", "owl", "silence", "wren"],
        bag_ids=["p", "q", "r", "s"],
        groups=[0, 0, 1, 1],
        background="silence",
    )


def test_votes_certain_labels_and_unknown_ones_stand_side_by_side(voted):
    assert voted.classes.tolist() == ["owl", "silence", "wren"]
    assert voted.candidate_weights.tolist() == [[3, 0, 1], [0.5, 0, 0], [0.5, 0.5, 0.5], [2, 1, 0]]
    assert voted.candidates.tolist() == (voted.candidate_weights > 0).tolist()
    with pytest.raises(ValueError, match="read-only"):
        voted.candidate_weights[0, 0] = 1


def test_selections_and_splits_keep_weights_and_background(voted):
    train, test = voted.split(0.5, seed=0)
    for part in (voted[1:3], voted[[3, 0]], voted[2], train, test):
        rows = [voted.bag_ids.tolist().index(name) for name in part.bag_ids]
        assert part.candidate_weights.tolist() == voted.candidate_weights[rows].tolist()
        assert part.background == "silence"
    assert voted[1].candidate_weights.tolist() == [[0.5, 0, 0]]  # still weights, not a mask


def test_equal_data_have_equal_weights_and_background(voted):
    parts = {"bags": voted.bags, "labels": voted.labels, "classes": voted.classes, "bag_ids": voted.bag_ids}
    parts |= {"groups": voted.groups, "candidates": voted.candidates}
    weights = {"candidate_weights": voted.candidate_weights}
    assert MIPLDataset(**parts, **weights, background="silence").equals(voted)
    assert not MIPLDataset(**parts, **weights).equals(voted)
    assert not MIPLDataset(**parts, **weights, background="owl").equals(voted)
    assert not MIPLDataset(**parts, background="silence").equals(voted)
    assert not MIPLDataset(**parts, candidate_weights=2 * voted.candidate_weights, background="silence").equals(voted)


@pytest.mark.parametrize(
    "names",
    [
        ["ward 2", "ward 1", "ward 2"],
        [("mill", 3), ("mill", 1), ("mill", 3)],
        np.array([2.0, 0.0, 2.0]),
        pd.Series(["n", "m", "n"], dtype="category"),
        [2**70, 5, 2**70],
    ],
    ids=["text", "tuples", "floats", "categories", "large"],
)
def test_groups_may_have_names(names):
    ds = MIPLDataset(np.arange(3.0).reshape(3, 1, 1), ["a|b", "a", "b"], groups=names)
    assert ds.groups.dtype == np.int64
    assert ds.groups[0] == ds.groups[2] != ds.groups[1]
    train, test = ds.split(2, seed=0)
    assert set(train.groups.tolist()).isdisjoint(test.groups.tolist())
    assert MIPLDataset(ds.bags, ds.candidates, groups=[7, -3, 7]).groups.tolist() == [7, -3, 7]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", None, "a"], "bag 'q' has no group"),
        ([[1], [2], [3]], "groups must be 3 integers, one per bag, or as many names"),
        ("abc", "groups must be 3 integers"),
        (["a", "b"], "as many names, got 2"),
        ([0.5, 1, 2], "got 0.5; a number with a fraction"),
    ],
)
def test_groups_that_are_none_are_refused(groups, message):
    with pytest.raises(DataError, match=message):
        MIPLDataset(np.arange(3.0).reshape(3, 1, 1), ["a|b", "a", "b"], bag_ids=["p", "q", "r"], groups=groups)


def test_supervision_has_what_may_be_learned_from_and_not_the_truth(voted):
    told = voted.supervision()
    np.testing.assert_array_equal(told.weights, voted.candidate_weights)
    assert (told.background, told.groups.tolist(), told.sample_weight) == (1, [0, 0, 1, 1], None)
    assert not hasattr(told, "labels")


def test_a_true_label_outside_the_candidates_is_kept_and_remarked(voted):
    assert voted.labels_outside().tolist() == [3]
    assert voted.label_names()[3] == "wren"
    assert voted.summary()["outside"] == 1
    assert "1 true labels outside the candidates" in repr(voted)
    assert voted[:3].labels_outside().tolist() == []
    assert "outside" not in voted[:3].summary()
    assert MIPLDataset(voted.bags, voted.candidates).labels_outside().tolist() == []


def test_repr_and_summary_say_that_there_are_weights_and_a_background_class(voted):
    assert "weighted candidates, background='silence'" in repr(voted)
    assert voted.summary()["weights"] == pytest.approx((4 + 0.5 + 1.5 + 3) / 4)
    assert voted.summary()["background"] == "silence"


def test_a_frame_may_hold_votes_and_blanks():
    frame = pd.DataFrame(
        {"bag_id": ["x", "y", "x", "z"], "candidates": ["owl:3|wren:1", None, None, "owl"], "f0": [1.0, 2.0, 3.0, 4.0]}
    )
    ds = MIPLDataset.from_frame(frame, background="wren")
    assert ds.candidate_weights.tolist() == [[3, 1], [0.5, 0.5], [0.5, 0]]
    assert ds.background == "wren"


def test_a_frame_of_a_data_set_is_read_back(voted):
    named = voted.with_bags(
        Bags(voted.bags.instances, voted.bags.offsets, feature_names=[f"x{j}" for j in range(voted.bags.n_features)])
    )
    frame = named.to_frame()
    assert list(frame.columns[:2]) == ["bag_id", "candidates"]
    back = MIPLDataset.from_frame(frame, classes=voted.classes, background=voted.background)
    assert back.bags == named.bags
    assert np.array_equal(back.candidate_weights, voted.candidate_weights)
    assert back.bag_ids.tolist() == voted.bag_ids.tolist()
    assert back.label_names() == voted.label_names()


def test_a_feature_with_the_name_of_another_column_is_refused(voted):
    named = Bags(voted.bags.instances[:, :1], voted.bags.offsets, feature_names=["candidates"])
    with pytest.raises(DataError, match="a feature is called 'candidates', as the column of candidates would be"):
        voted.with_bags(named).to_frame()


def test_scikit_learn_may_take_a_data_set_for_an_array(digits):
    index = np.array([5, 3, 8])
    assert digits.shape == (len(digits),)
    assert digits[index, ...].equals(digits[index])


@pytest.mark.parametrize("what", ["classes", "bag_ids", "feature_names"])
def test_names_that_no_file_can_hold_are_refused(what: str):
    names = {"classes": ["a", "b"], "bag_ids": ["1", "2"], "feature_names": ["x", "y"]}
    names[what][1] = "half \ud800"

    def made() -> mipl.MIPLDataset:
        bags = mipl.Bags(np.zeros((2, 2)), [0, 1, 2], feature_names=names["feature_names"])
        return mipl.MIPLDataset(bags, [names["classes"]] * 2, classes=names["classes"], bag_ids=names["bag_ids"])

    with pytest.raises(DataError, match="half a character"):
        made()


def test_the_name_and_the_description_of_a_data_set_can_be_written(tmp_path):
    ds = mipl.MIPLDataset([[[1.0]], [[2.0]]], [{"a", "b"}] * 2, name="n\udcff", description="\ud800")
    assert (ds.name, ds.description) == ("n\\udcff", "\\ud800")
    assert mipl.load(ds.save(tmp_path / "x.parquet")).name == ds.name
