"""from_instances, from_bags, make_bags and the digits: what every synthesised data set promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mipl
from mipl import DataError
from mipl.datasets import from_bags, from_instances, make_bags, min_max, z_scores
from mipl.datasets.synthesis.layout import add_false_positives, lay_out
from mipl.datasets.synthesis.randomness import deal, uniforms


def numbered(n_a: int = 40, n_b: int = 50, n_negative: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Instances whose only feature is their row number, so that a bag tells which rows it holds."""
    y = np.repeat(["a", "b", "wind", "rain", "unused"], [n_a, n_b, n_negative // 2, n_negative // 2, 20])
    return np.arange(len(y), dtype=np.float64)[:, None], y


# ---------------------------------------------------------------- randomness


def test_uniforms_are_the_doubles_of_numpys_own_generator() -> None:
    own = np.random.Generator(np.random.PCG64(np.random.SeedSequence([3, 907060870]))).random(100)
    assert np.array_equal(uniforms(3, "hello", 100), own)  # 907060870 is the CRC-32 of "hello"


def test_streams_of_different_purpose_or_seed_differ() -> None:
    draws = [uniforms(0, "a", 5), uniforms(0, "b", 5), uniforms(1, "a", 5)]
    assert len({d.tobytes() for d in draws}) == 3


def test_a_negative_seed_is_a_clear_error() -> None:
    with pytest.raises(DataError, match="non-negative"):
        uniforms(-1, "a", 5)


@given(pool=st.integers(1, 30), n=st.integers(1, 200), hand=st.integers(1, 15))
def test_dealing_uses_every_card_equally_often_and_none_twice_in_a_hand(pool: int, n: int, hand: int) -> None:
    cards = deal(0, "cards", 100 + np.arange(pool), n, hand)
    counts = np.bincount(cards - 100, minlength=pool)
    assert len(cards) == n
    assert counts.max() - counts.min() <= 1
    if 2 * hand <= pool:
        assert all(len(set(cards[i : i + hand])) == len(cards[i : i + hand]) for i in range(n))


# ---------------------------------------------------------------- the layout


@given(
    per_class=st.integers(1, 30),
    q=st.integers(2, 6),
    low=st.integers(1, 20),
    spread=st.integers(0, 40),
    where=st.floats(0, 1),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 5),
)
def test_a_layout_keeps_bounds_mean_share_and_class_balance(
    per_class: int, q: int, low: int, spread: int, where: float, share: float, seed: int
) -> None:
    mean = low + where * spread
    plan = lay_out(per_class * q, q, (low, low + spread), mean, share, seed)
    sizes = np.diff(plan.offsets)
    n_positive = np.add.reduceat(plan.positive.astype(int), plan.offsets[:-1])
    assert sizes.min() >= low
    assert sizes.max() <= low + spread
    assert abs(sizes.sum() - mean * len(sizes)) <= 0.5 + spread
    assert (np.bincount(plan.labels) == per_class).all()
    assert (n_positive >= 1).all()
    assert (np.abs(n_positive - share * sizes) < 1 + 1e-9).all()


def test_positive_slots_are_uniform_inside_the_bag() -> None:
    plan = lay_out(5000, 2, (10, 10), None, 0.2, 0)
    by_slot = plan.positive.reshape(-1, 10).mean(axis=0)
    assert np.abs(by_slot - 0.2).max() < 4 * np.sqrt(0.2 * 0.8 / 5000)


# ---------------------------------------------------------------- false positives


@given(q=st.integers(2, 9), seed=st.integers(0, 100))
def test_candidate_sets_grow_with_r_and_hold_the_truth(q: int, seed: int) -> None:
    labels = np.arange(30) % q
    masks = [add_false_positives(labels, q, r, seed) for r in range(q)]
    for r, mask in enumerate(masks):
        assert (mask.sum(axis=1) == r + 1).all()
        assert mask[np.arange(30), labels].all()
        assert (masks[r - 1] <= mask).all() or r == 0


def test_false_positives_are_uniform_over_the_other_classes() -> None:
    labels = np.zeros(20_000, dtype=np.int64)
    share = add_false_positives(labels, 5, 2, 0).mean(axis=0)
    assert share[0] == 1
    assert np.abs(share[1:] - 0.5).max() < 4 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("r", [-1, 5])
def test_r_beyond_the_other_classes_is_a_clear_error(r: int) -> None:
    with pytest.raises(DataError, match="0 to 4 false positive"):
        mipl.load("digits", r=r)


# ---------------------------------------------------------------- from_instances and from_bags


def test_positives_are_of_the_bags_class_and_negatives_of_a_reserved_class() -> None:
    X, y = numbered()
    ds = from_instances(X, y, ["a", "b"], ["wind", "rain"], n_bags=20, sizes=(5, 15), positive=0.2, r=1)
    source = y[ds.bags.instances[:, 0].astype(int)]
    own = ds.classes[ds.labels][ds.bags.bag_of_instance]
    positive = ds.instance_labels < 2
    assert (source[positive] == own[positive]).all()
    assert set(source[~positive]) == {"wind", "rain"}
    assert (ds.instance_labels[positive] == ds.labels[ds.bags.bag_of_instance][positive]).all()


def test_no_instance_is_used_twice_while_the_source_lasts_and_never_twice_in_a_bag() -> None:
    X, y = numbered(n_negative=200)
    options = {"targets": ["a", "b"], "reserved": ["wind", "rain"], "sizes": (5, 15), "positive": 0.2}
    few = from_instances(X, y, n_bags=20, **options)
    assert len(np.unique(few.bags.instances)) == few.bags.n_instances
    many = from_instances(X, y, n_bags=100, **options)
    counts = np.unique(many.bags.instances, return_counts=True)[1]
    assert counts.max() > 1
    assert all(len(np.unique(bag)) == len(bag) for bag in many.bags)


def test_bags_do_not_depend_on_r_and_differ_between_seeds() -> None:
    X, y = numbered()
    build = lambda r, seed: from_instances(  # noqa: E731
        X, y, ["a", "b"], ["wind"], n_bags=10, sizes=(5, 9), r=r, seed=seed
    )
    assert build(0, 0).bags == build(1, 0).bags
    assert build(0, 0).bags != build(0, 1).bags


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["a", "wren"]}, "no instance has the label 'wren' of a target"),
        ({"reserved": ["fog"]}, "no instance has the label 'fog' of a reserved class"),
        ({"reserved": ["a"]}, r"\['a'\] is both"),
        ({"reserved": []}, "no instance is negative; name the reserved classes"),
        ({"targets": ["a"]}, "at least two"),
        ({"n_bags": 11}, "n_bags=11 is no multiple of the 2 classes"),
        ({"sizes": (9, 5)}, "1 <= smallest <= mean <= largest"),
        ({"mean_size": 40}, "1 <= smallest <= mean <= largest"),
        ({"positive": 0}, "positive=0"),
        ({"y": np.zeros(3)}, "one label a row"),
    ],
)
def test_a_bad_request_says_what_is_wrong(changes: dict, message: str) -> None:
    X, y = numbered()
    request = {"X": X, "y": y, "targets": ["a", "b"], "reserved": ["wind"], "n_bags": 10, "sizes": (5, 9)} | changes
    with pytest.raises(DataError, match=message):
        from_instances(**request)


def test_from_bags_keeps_the_bags_and_takes_integer_labels() -> None:
    bags = [np.full((k, 2), k, dtype=np.float32) for k in (1, 2, 3, 4)]
    ds = from_bags(bags, [7, 9, 7, 11], r=1, bag_ids=["w", "x", "y", "z"])
    assert ds.classes.tolist() == [7, 9, 11]
    assert ds.labels.tolist() == [0, 1, 0, 2]
    assert ds.bags.sizes.tolist() == [1, 2, 3, 4]
    assert (ds.candidates.sum(axis=1) == 2).all()
    assert ds.bag_ids.tolist() == ["w", "x", "y", "z"]


def test_from_bags_wants_every_label() -> None:
    with pytest.raises(DataError, match="bag 1 has no label"):
        from_bags(np.zeros((2, 3, 1)), ["a", None], classes=["a", "b"])


# ---------------------------------------------------------------- digits and make_bags


def test_digits_are_as_documented_and_use_every_image_at_most_once() -> None:
    from sklearn.datasets import load_digits

    ds = mipl.load("digits", r=3, seed=4)
    summary = ds.summary()
    assert (summary["bags"], summary["instances"], summary["min"], summary["max"]) == (150, 1125, 5, 10)
    assert summary["positive"] == pytest.approx(20)
    assert ds.bags.instance_shape == (8, 8)
    assert ds.bags.instances.min() == 0
    assert ds.bags.instances.max() == 1
    X, y = load_digits(return_X_y=True)
    of_image = {image.tobytes(): str(label) for image, label in zip((X / 16).astype(np.float32), y, strict=True)}
    keys = [image.tobytes() for image in ds.bags.instances]
    assert len(set(keys)) == len(keys)
    names = np.append(ds.classes, "odd")[ds.instance_labels]
    assert all(of_image[k] == n if n != "odd" else of_image[k] in "13579" for k, n in zip(keys, names, strict=True))


def test_separated_gaussians_are_told_apart_by_their_centres_and_mixed_ones_are_not() -> None:
    def oracle(separation: float) -> float:
        ds = make_bags(n_bags=200, separation=separation, seed=1)
        kind = ds.instance_labels
        centres = np.stack([ds.bags.instances[kind == c].mean(axis=0) for c in range(6)])
        distance = ((ds.bags.instances[:, None] - centres) ** 2).sum(axis=2)
        return float(np.mean(distance.argmin(axis=1) == kind))

    assert oracle(8.0) > 0.99
    assert oracle(0.0) < 0.5


def test_make_bags_has_the_asked_shape() -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=7, sizes=(4, 30), mean_size=10, positive=0.3, r=2, seed=5)
    summary = ds.summary()
    assert (summary["bags"], summary["classes"], summary["dims"], summary["candidates"]) == (60, 3, 7, 3.0)
    assert (summary["min"], summary["max"]) == (4, 30)
    assert summary["instances"] == pytest.approx(600, rel=0.02)
    assert summary["positive"] == pytest.approx(30, abs=0.5)


@pytest.mark.parametrize(("scale", "scaler"), [(min_max, MinMaxScaler()), (z_scores, StandardScaler())])
def test_scaling_is_that_of_scikit_learns_scaler_fitted_on_the_training_bags(scale: Any, scaler: Any) -> None:
    train, test = make_bags(seed=2).split(0.3)
    scaler.fit(train.bags.instances.astype(np.float64))
    for raw, scaled in zip((train, test), scale(train, test), strict=True):
        assert np.allclose(scaled.bags.instances, scaler.transform(raw.bags.instances), atol=1e-6)
        assert np.array_equal(scaled.labels, raw.labels)
        assert raw.bags.instances.max() > 2  # the given data stay as they were
