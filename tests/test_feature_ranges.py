"""Bags far outside of the training range are reported once, by number and by feature."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from quick_methods import quick

import mipl
from mipl.bags import Bags
from mipl.feature_ranges import feature_ranges, warn_of_far_features, warn_of_wild_bags
from mipl.small_problems import small_dataset


def bags_of(rows: list[list[float]], names: list[str] | None = None) -> Bags:
    return Bags(np.array(rows), np.arange(len(rows) + 1), feature_names=names)


def told(bags: Bags, train: Bags) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_far_features(bags, feature_ranges(train))
    return [str(each.message) for each in caught]


def test_values_within_a_hundred_widths_are_not_worth_a_word() -> None:
    train = bags_of([[0.0, 5.0], [2.0, 5.0]])
    assert told(bags_of([[201.0, 5.0], [-199.0, 500.0]]), train) == []


def test_all_bags_are_counted_in_one_warning_that_names_the_feature_furthest_outside() -> None:
    train = bags_of([[0.0, 5.0, 1.0], [2.0, 5.0, 2.0]], ["height", "width", "age"])
    new = bags_of([[0.0, 5.0, 1.0], [300.0, 5.0, 1.0], [0.0, -1e30, 1.0]], ["height", "width", "age"])
    (message,) = told(new, train)
    assert message.startswith("2 of 3 bags have features far outside of the training range: feature 'width' is -1e+30")
    assert "in training it was 5 to 5 (and 1 more)" in message


def test_features_without_names_are_told_by_their_index() -> None:
    (message,) = told(bags_of([[0.0, 3e38]]), bags_of([[0.0, -3e38], [1.0, -2.99e38]]))
    assert "feature 1 is 3e+38" in message


@pytest.mark.parametrize("name", ["BagGP", "PL-kNN", "VGPMIL"])
def test_every_method_reports_a_change_of_units_to_the_caller(name: str, tmp_path) -> None:
    data = small_dataset()
    model = mipl.load_model(quick(name).fit(data).save(tmp_path / "m.mipl"))
    X = data.bags.instances.copy()
    X[data.bags.offsets[3], 2] *= 1e6
    with pytest.warns(UserWarning, match="1 of 24 bags .* feature 'weight'") as caught:
        model.predict(Bags(X, data.bags.offsets, feature_names=data.bags.feature_names))
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("name", ["BagGP", "PL-kNN", "VGPMIL"])
def test_a_training_bag_far_from_all_others_is_named_with_the_feature_furthest_away(name: str) -> None:
    data = small_dataset()
    X = data.bags.instances.copy()
    X[data.bags.offsets[3], 1], X[data.bags.offsets[3], 2] = -1e9, 1e19
    wild = mipl.MIPLDataset(
        Bags(X, data.bags.offsets, feature_names=data.bags.feature_names), data.candidates, bag_ids=data.bag_ids
    )
    told = r"1 of 24 training bags are far .* feature 'weight' is 1e\+19 in bag 'animal-3', .* \(and 1 more\)"
    with pytest.warns(UserWarning, match=told):
        quick(name).fit(wild)


def test_ordinary_training_bags_are_not_worth_a_word() -> None:
    rng = np.random.default_rng(0)
    logits = 20 * rng.standard_normal((300, 5))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)  # most of them below 1e-6, some near one
    sparse = rng.exponential(size=(300, 5)) * (rng.random((300, 5)) < 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (shares, sparse, np.exp(3 * rng.standard_normal((300, 5))), np.zeros((300, 5)), np.eye(2)):
            warn_of_wild_bags(Bags(rows.astype(np.float32), np.arange(len(rows) + 1)))
