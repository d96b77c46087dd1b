"""Images in either layout: told apart where that is possible, asked for where it is not, and enforced by models."""

from __future__ import annotations

import numpy as np
import pytest

import mipl
from mipl import Bags, DataError, ParameterError

LAST = [np.random.default_rng(i).random((n, 8, 6, 3)).astype(np.float32) for i, n in enumerate((2, 3, 1, 4))]
FIRST = [np.moveaxis(bag, -1, 1) for bag in LAST]
SETS = [["a"], ["b"], ["a"], ["b"]]


def test_channels_are_found_at_the_end_that_has_1_3_or_4():
    bags = Bags.from_list(LAST)
    assert bags.instance_shape == (8, 6, 3)
    assert Bags.from_list(FIRST) == bags
    assert np.array_equal(bags[1].reshape(3, 8, 6, 3), LAST[1])
    assert Bags.from_list([np.ones((2, 4, 5, 3))]).instance_shape == (4, 5, 3)
    grey = [bag[..., :1] for bag in LAST]
    assert Bags.from_list([np.moveaxis(bag, -1, 1) for bag in grey]) == Bags.from_list(grey)


def test_a_stack_of_images_is_read_in_either_layout():
    stack = np.random.default_rng(0).random((4, 2, 8, 6, 3)).astype(np.float32)
    assert Bags.from_array(np.moveaxis(stack, -1, 2)) == Bags.from_array(stack)
    assert Bags.from_array(stack[..., 0]).instance_shape == (8, 6)


@pytest.mark.parametrize("shape", [(3, 8, 3), (4, 6, 1), (5, 6, 7), (2, 9, 9)])
def test_what_could_be_either_is_asked_for(shape: tuple[int, ...]):
    images = [np.random.default_rng(0).random((2, *shape)).astype(np.float32)]
    with pytest.raises(DataError, match=r"pass channels='last' or channels='first' to Bags.from_list"):
        Bags.from_list(images)
    assert Bags.from_list(images, channels="last").instance_shape == shape
    first = Bags.from_list(images, channels="first")
    assert first.instance_shape == (*shape[1:], shape[0])
    assert np.array_equal(first[0].reshape(2, *first.instance_shape), np.moveaxis(images[0], 1, -1))
    assert Bags.from_list(images, instance_shape=shape).instance_shape == shape  # who gives the shape is believed


def test_channels_of_what_has_none_are_refused():
    with pytest.raises(DataError, match=r"channels='first' is for colour images .*these are \(5,\)"):
        Bags.from_list([np.ones((2, 5))], channels="first")
    with pytest.raises(ParameterError, match=r"channels='middle'; it must be 'first', 'last' or None"):
        Bags.from_list(LAST, channels="middle")


@pytest.mark.parametrize("name", ["PL-kNN", "DEMIPL"])
def test_a_model_answers_alike_for_both_layouts_and_for_flat_images(name: str):
    model = mipl.make(name, **({"max_epochs": 1} if name == "DEMIPL" else {})).fit(LAST, SETS)
    expected = model.predict_proba(LAST)
    assert np.array_equal(model.predict_proba(FIRST), expected)
    assert np.array_equal(model.predict_proba([bag.reshape(len(bag), -1) for bag in LAST]), expected)


def test_a_model_refuses_images_of_another_shape_and_says_what_to_do():
    model = mipl.make("PL-kNN").fit(LAST, SETS)
    turned = Bags.from_list(FIRST, instance_shape=(3, 8, 6))
    message = r"shape \(3, 8, 6\), the model has \(8, 6, 3\).*Bags.from_list\(bags, channels='first'\)"
    for ask in (model.predict, model.predict_proba, model.predict_instances, model.score):
        with pytest.raises(DataError, match=message):
            ask(turned)
    with pytest.raises(DataError, match=r"shape \(6, 8, 3\), the model has \(8, 6, 3\)"):
        model.predict([np.swapaxes(bag, 1, 2) for bag in LAST])
    with pytest.raises(
        DataError, match=r"243 features, the model was fitted with 144 \(instances of shape \(8, 6, 3\)\)"
    ):
        model.predict([np.ones((2, 9, 9, 3))])


def test_one_channel_more_or_less_is_the_same_image():
    grey = [bag[..., 0] for bag in LAST]
    model = mipl.make("PL-kNN").fit(grey, SETS)
    expected = model.predict_proba(grey)
    assert np.array_equal(model.predict_proba([bag[..., None] for bag in grey]), expected)
    assert np.array_equal(model.predict_proba([bag[:, None] for bag in grey]), expected)
