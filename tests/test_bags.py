"""Bags against plain NumPy loops over a list of arrays."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

import mipl
from mipl.bags import Bags, as_bags
from mipl.errors import DataError

finite = st.floats(-1e6, 1e6, width=32)


@st.composite
def bag_lists(draw: st.DrawFn) -> list[np.ndarray]:
    d = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
    return [draw(hnp.arrays(np.float32, (n, d), elements=finite)) for n in sizes]


def same(bags: Bags, arrays: list[np.ndarray]) -> bool:
    return len(bags) == len(arrays) and all(np.array_equal(a, b) for a, b in zip(bags, arrays, strict=True))


@given(bag_lists())
def test_a_list_of_arrays_comes_back_bag_by_bag(arrays):
    bags = Bags.from_list(arrays)
    assert same(bags, arrays)
    assert bags.sizes.tolist() == [len(a) for a in arrays]
    assert bags.bag_of_instance.tolist() == [i for i, a in enumerate(arrays) for _ in a]


@given(bag_lists(), st.randoms(use_true_random=False))
def test_rows_in_any_order_give_the_same_bags(arrays, random):
    # Interleave the bags' rows; inside a bag the order is kept, and bags are ordered by their first row.
    tagged = [(i, row) for i, a in enumerate(arrays) for row in a]
    queues = {i: [row for j, row in tagged if j == i] for i in range(len(arrays))}
    order = [i for i, _ in tagged]
    random.shuffle(order)
    rows = np.array([queues[i].pop(0) for i in order])
    first_seen = list(dict.fromkeys(order))
    assert same(Bags.from_flat(rows, order), [arrays[i] for i in first_seen])


@given(bag_lists(), st.data())
def test_indexing_follows_a_list(arrays, data):
    bags = Bags.from_list(arrays)
    index = data.draw(st.lists(st.integers(-len(arrays), len(arrays) - 1), min_size=1, max_size=12))
    assert same(bags[np.array(index)], [arrays[i] for i in index])
    assert same(bags[index, ...], [arrays[i] for i in index])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(arrays), max_size=len(arrays))))
    if mask.any():
        assert same(bags[mask], [a for a, keep in zip(arrays, mask, strict=True) if keep])
    part = data.draw(st.slices(len(arrays)))
    if arrays[part]:
        assert same(bags[part], arrays[part])
    i = data.draw(st.integers(-len(arrays), len(arrays) - 1))
    assert np.array_equal(bags[i], arrays[i])


@given(bag_lists(), st.data())
def test_segment_reductions_equal_loops(arrays, data):
    bags = Bags.from_list(arrays)
    shape = (bags.n_instances, *data.draw(st.sampled_from([(), (3,)])))
    values = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(-700, 700)))
    parts = np.split(values, bags.offsets[1:-1])
    for name, loop in {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "logsumexp": logsumexp}.items():
        expected = np.array([loop(p, axis=0) for p in parts])
        np.testing.assert_allclose(getattr(bags, name)(values), expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(bags.spread(bags.max(values)), [bags.max(values)[i] for i in bags.bag_of_instance])


def test_logsumexp_survives_infinities_and_huge_values():
    bags = Bags.from_list([np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((1, 1))])
    values = np.array([1e5, 1e5, -np.inf, -np.inf, -1e5])
    np.testing.assert_allclose(bags.logsumexp(values), [1e5 + np.log(2), -np.inf, -1e5])


@given(bag_lists(), bag_lists())
def test_concatenation_appends_bags(first, second):
    second = [np.resize(a, (len(a), first[0].shape[1])) for a in second]
    joined = Bags.concatenate([Bags.from_list(first), Bags.from_list(second)])
    assert same(joined, first + second)


@st.composite
def named_bags(draw: st.DrawFn) -> Bags:
    arrays = draw(bag_lists())
    d = arrays[0].shape[1]
    names = draw(st.lists(st.text(max_size=3), min_size=d, max_size=d, unique=True))
    return Bags.from_list(arrays, feature_names=names)


@given(named_bags(), st.data())
def test_feature_names_travel_with_every_selection(bags, data):
    index = data.draw(st.lists(st.integers(0, len(bags) - 1), min_size=1, max_size=6))
    mask = np.isin(np.arange(len(bags)), index)
    parts = [bags[index], bags[mask], bags[:1], bags[::-1], bags.single_instances(), Bags.concatenate([bags, bags[:1]])]
    parts += [pickle.loads(pickle.dumps(bags)), copy.deepcopy(bags)]
    for part in parts:
        assert part.feature_names == bags.feature_names
    assert parts[-1] == bags
    assert Bags(bags.instances, bags.offsets) != bags


@given(named_bags(), st.data())
def test_features_are_selected_by_name_in_the_order_asked_for(bags, data):
    names = data.draw(st.lists(st.sampled_from(bags.feature_names), min_size=1, unique=True))
    chosen = bags.select_features(names)
    columns = [bags.feature_names.index(name) for name in names]
    assert same(chosen, [bag[:, columns] for bag in bags])
    assert chosen.feature_names == tuple(names)
    assert chosen.instances.flags.c_contiguous
    assert bags.select_features(bags.feature_names) is bags


@given(named_bags(), st.data())
def test_concatenation_matches_columns_by_name(bags, data):
    turned = bags.select_features(data.draw(st.permutations(bags.feature_names)))
    assert Bags.concatenate([bags, turned]) == bags[[*range(len(bags)), *range(len(bags))]]


def test_concatenation_of_other_features_names_them():
    first = Bags.from_list([np.ones((1, 2))], feature_names=["a", "b"])
    with pytest.raises(DataError, match="part 0 has the feature 'b', the bags have not; they have 'a', 'c'"):
        Bags.concatenate([first, Bags.from_list([np.ones((1, 2))], feature_names=["a", "c"])])
    with pytest.raises(DataError, match="the bags have the feature 'c', part 0 has not"):
        Bags.concatenate([first, Bags.from_list([np.ones((1, 3))], feature_names=["c", "a", "b"])])
    with pytest.raises(DataError, match="part 0 has feature names, part 1 has none"):
        Bags.concatenate([first, Bags.from_list([np.ones((1, 2))])])
    with pytest.raises(DataError, match=r"part 1 has instances of shape \(3,\), part 0 of \(2,\)"):
        Bags.concatenate([Bags.from_list([np.ones((1, 2))]), Bags.from_list([np.ones((1, 3))])])


def test_a_three_dimensional_array_is_equal_sized_bags():
    array = np.arange(24.0).reshape(4, 3, 2)
    assert same(Bags.from_array(array), list(array.astype(np.float32)))
    assert same(as_bags(array), list(array.astype(np.float32)))


def test_images_keep_their_shape():
    bags = Bags.from_list([np.zeros((3, 4, 5)), np.ones((1, 4, 5))])
    assert bags.instance_shape == (4, 5)
    assert bags.n_features == 20
    assert bags[[1]].instance_shape == (4, 5)
    assert pickle.loads(pickle.dumps(bags)) == bags


def test_a_frame_is_grouped_by_its_bag_column():
    frame = pd.DataFrame({"x": [1, 2, 3], "bag": ["b", "a", "b"], "y": [0.5, 1.5, 2.5]})
    bags = Bags.from_frame(frame, bag="bag")
    assert same(bags, [np.array([[1, 0.5], [3, 2.5]]), np.array([[2, 1.5]])])
    assert bags.feature_names == ("x", "y")
    assert Bags.from_frame(frame, bag="bag", features=["y"]).feature_names == ("y",)
    assert Bags.from_frame(frame.rename(columns={"x": 0}), bag="bag").feature_names == ("0", "y")


def test_float32_rows_are_not_copied_and_cannot_be_changed():
    flat = np.random.default_rng(0).random((10, 3)).astype(np.float32)
    bags = Bags.from_flat(flat, np.repeat([7, 3], 5))
    assert np.shares_memory(bags.instances, flat)
    assert np.shares_memory(bags[0], flat)
    with pytest.raises(ValueError, match="read-only"):
        bags.instances[0, 0] = 1
    with pytest.raises(AttributeError, match="immutable"):
        bags.offsets = np.array([0, 10])
    flat[0, 0] = 5  # the caller's own array stays the caller's


def test_scikit_learn_splits_validates_and_searches_over_bags():
    ds = mipl.load("digits", r=1)
    parts = [(len(ds.bags[a]), len(ds.bags[b])) for a, b in KFold(3).split(ds.bags)]
    assert parts == [(100, 50)] * 3
    model = mipl.make("PL-kNN")
    result = cross_validate(model, ds.bags, ds.candidates, cv=3, return_estimator=True)
    by_hand = []
    for train, test in KFold(3).split(ds.bags):
        fitted = mipl.make("PL-kNN").fit(ds.bags[train], ds.candidates[train])
        by_hand.append(fitted.score(ds.bags[test], ds.candidates[test]))
    np.testing.assert_allclose(result["test_score"], by_hand)
    search = GridSearchCV(model, {"embed": ["mean", "maxmin"]}, cv=3).fit(ds.bags, ds.candidates)
    assert search.best_estimator_.predict(ds.bags[:4]).shape == (4,)
    assert len(search.cv_results_["params"]) == 2


def test_bag_ids_of_any_kind_group_alike():
    flat = np.arange(4.0)[:, None]
    for ids in (
        ["x", "y", "x", "y"],
        pd.Series(["x", "y", "x", "y"]),
        np.array([1, 0, 1, 0], dtype=object),
        [1.5, 2, 1.5, 2],
    ):
        assert same(Bags.from_flat(flat, ids), [flat[[0, 2]], flat[[1, 3]]])


def test_a_frame_of_bags_is_read_back():
    bags = Bags.from_list([np.ones((2, 3)), np.zeros((1, 3))], feature_names=["a", "b", "c"])
    frame = bags.to_frame(["x", "y"])
    assert frame["bag_id"].tolist() == ["x", "x", "y"]
    assert Bags.from_frame(frame) == bags
    assert Bags.from_frame(pa.Table.from_pandas(frame)) == bags
    assert list(Bags(bags.instances, bags.offsets).to_frame().columns) == ["bag_id", "f0", "f1", "f2"]


def test_a_shape_of_as_many_features_is_taken_over():
    bags = Bags.from_list([np.arange(24.0).reshape(2, 12)])
    assert bags.with_instance_shape((3, 4), "x").instance_shape == (3, 4)
    images = Bags(bags.instances, bags.offsets, (3, 4))
    assert images.with_instance_shape((3, 4, 1), "x").instance_shape == (3, 4, 1)
    with pytest.raises(DataError, match=r"instances of shape \(3, 4\), the model has \(4, 3\)"):
        images.with_instance_shape((4, 3), "the model")
