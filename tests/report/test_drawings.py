"""What is drawn of an instance, decoded as a browser does and compared with the instance itself."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from report_pages import made_up

from mipl import Bags
from mipl.report.drawings import drawing_of, typical_instances
from mipl.report.evidence import evidence_of

MANY = 10**9


def tiles(drawing: Any, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The tiles of a sheet, cut out as the page's script does."""
    uri, legend = drawing.sheet(rows, rows, rows), drawing.legend()
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGB"))
    (wide, tall), (width, height) = legend["tile"], legend["image"]
    places = [divmod(k, legend["across"]) for k in range(len(rows))]
    return np.stack([sheet[y * tall : y * tall + height, x * wide : x * wide + width] for y, x in places])


@pytest.mark.parametrize(("budget", "step"), [(MANY, 1), (1_000, 16)])
def test_grey_images_come_back_dark_for_large_values(budget, step):
    found = made_up(shape=(6, 9))
    drawing = drawing_of(found, 200, budget)
    rows = np.arange(5, 40)
    values = found.bags.instances[rows].reshape(-1, 6, 9)
    low, high = found.bags.instances.min(), found.bags.instances.max()
    wanted = 255 * (1 - (values - low) / (high - low))
    drawn = tiles(drawing, rows)
    assert drawing.kind == "grey"
    assert np.abs(drawn[..., 0] - wanted).max() <= step
    assert (drawn == drawn[..., :1]).all()


@pytest.mark.parametrize("top", [1.0, 255.0])
def test_colour_images_keep_their_colours_apart_from_their_neighbours(top):
    colours = np.random.default_rng(0).random((60, 3))
    images = np.broadcast_to(colours[:, None, None, :], (60, 11, 13, 3)) * top
    found = made_up(m=12, bags=Bags(images.reshape(60, -1), np.arange(13) * 5, (11, 13, 3)))
    drawing = drawing_of(found, 60, MANY)
    drawn = tiles(drawing, np.arange(60))
    assert drawing.kind == "colour"
    assert np.abs(drawn - 255.0 * images / top).max() < 6


def test_large_images_are_shrunk_to_the_size_in_which_they_are_shown():
    steps = np.kron(np.arange(8) / 7, np.ones(16)).astype(np.float32)
    image = np.broadcast_to(steps, (32, 128))
    found = made_up(m=1, size=1, bags=Bags(image.reshape(1, -1), [0, 1], (32, 128)))
    drawing = drawing_of(found, 1, MANY)
    assert drawing.legend()["image"] == [64, 16]
    assert drawing.legend()["shrunk"]
    assert (
        np.abs(tiles(drawing, np.array([0]))[0, :, :, 0] - 255 * (1 - np.kron(np.arange(8) / 7, np.ones(8)))).max() <= 1
    )


def points(text: str, n: int) -> NDArray[np.int64]:
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, n).astype(np.int64)


def test_profiles_keep_the_shape_of_a_spectrum():
    found = made_up(shape=(20,))
    drawing = drawing_of(found, 200, MANY)
    rows = np.arange(7)
    drawn = points(drawing.sheet(rows, rows, rows)["points"], 20)
    values = found.bags.instances
    low, high = np.percentile(values.astype(float), [0.5, 99.5])
    assert np.abs(drawn - np.clip(255 * (values[rows] - low) / (high - low), 0, 255)).max() <= 0.51
    assert not drawing.legend()["standardised"]
    assert not drawing.legend()["averaged"]


def test_long_profiles_are_averages_of_neighbours():
    wave = np.repeat(np.linspace(-1, 1, 48), 10).astype(np.float32)
    noise = np.tile([-0.4, 0.4], 240).astype(np.float32)
    found = made_up(m=2, size=1, bags=Bags(np.stack([wave + noise, wave - noise]), [0, 1, 2]))
    drawing = drawing_of(found, 2, MANY)
    rows = np.arange(2)
    first, second = points(drawing.sheet(rows, rows, rows)["points"], 48)
    assert np.abs(first - second).max() <= 1
    assert (np.diff(first) >= 0).all()
    assert drawing.legend()["averaged"]


def test_features_of_different_scales_are_measured_in_their_own():
    values = np.random.default_rng(0).normal(size=(200, 3)) * [1, 1_000, 0.01] + [0, 5_000, 3]
    found = made_up(bags=Bags(values, np.arange(41) * 5, feature_names=["hue", "mass", "depth"]))
    drawing = drawing_of(found, 200, MANY)
    rows = np.arange(200)
    sheet = drawing.sheet(rows, rows, rows)
    drawn = points(sheet["points"], 3)
    assert drawing.legend()["standardised"]
    assert np.ptp(drawn.std(axis=0)) < 5
    unusual = np.abs((values - values.mean(axis=0)) / values.std(axis=0)).argmax(axis=1)
    assert [told[0][0] for told in sheet["told"]] == unusual.tolist()
    assert sheet["told"][0][0][1] == f"{np.float32(values[0, unusual[0]]):.3g}"


def test_typical_instances_are_the_means_of_those_behind_the_labels():
    found = made_up(shape=(7,))
    expected = np.zeros((4, 7))
    weight = np.zeros(4)
    for i, label in enumerate(found.labels):
        c = int(label[-1])
        expected[c] += found.probability[i] * found.bags[i][found.instance[i]]
        weight[c] += found.probability[i]
    assert np.allclose(typical_instances(found), expected / weight[:, None], atol=1e-5)


def test_words_are_those_of_the_instance_and_speak_for_the_label_that_they_occur_with():
    words = ["goal", "orbit", "the", *(f"rare{j}" for j in range(9))]
    values = np.zeros((40, 12), dtype=np.float32)
    values[:20, 0], values[20:, 1], values[:, 2] = 0.8, 0.8, 0.4
    labels = np.repeat([0, 1], 20)
    found = made_up(
        m=40,
        q=2,
        size=1,
        bags=Bags(values, np.arange(41), feature_names=words),
        posterior=np.eye(2)[labels] * 0.8 + 0.1,
        candidates=np.ones((40, 2), dtype=bool),
        instance_probabilities=np.eye(3)[labels],
    )
    drawing = drawing_of(found, 40, MANY)
    sheet = drawing.sheet(np.array([0, 25, 25]), np.array([0, 1, 0]), np.array([1, 0, 1]))
    told = [[(drawing.legend()["vocabulary"][word], weight, side) for word, weight, side in each] for each in sheet]
    assert drawing.kind == "words"
    assert told == [
        [("goal", 100, 1), ("the", 50, 0)],
        [("orbit", 100, 1), ("the", 50, 0)],
        [("orbit", 100, 2), ("the", 50, 0)],
    ]


def test_named_features_with_negative_values_are_no_words():
    values = np.where(np.random.default_rng(0).random((200, 10)) < 0.8, 0, -1)
    found = made_up(bags=Bags(values, np.arange(41) * 5, feature_names=[f"w{j}" for j in range(10)]))
    assert drawing_of(found, 200, MANY).kind == "profile"


def test_the_instances_of_a_bag_are_drawn_with_their_evidence_for_both_labels():
    found = made_up(m=6, q=3, size=30)
    drawn = evidence_of(found, np.arange(6), MANY)
    column = found.classes.tolist().index
    for i, (sheet, first, numbers, for_label, for_second) in drawn.details.items():
        own = found.instance_probabilities[found.offsets[i] : found.offsets[i + 1]]
        label, second = column(found.labels[i]), found.second_label[i]
        assert numbers[0] == found.instance[i]
        assert len(set(numbers)) == 12
        assert np.allclose(np.array(for_label) / 1000, own[numbers, label], atol=5e-4)
        if second is None:
            assert for_second is None
        else:
            assert np.allclose(np.array(for_second) / 1000, own[numbers, column(second)], atol=5e-4)
            assert int(own[:, column(second)].argmax()) in numbers
        assert first + len(numbers) <= 256
        assert sheet < len(drawn.sheets)


def test_the_background_class_has_no_evidence_and_the_typical_instance_of_all_its_bags():
    found = made_up(m=12, q=3, size=30, shape=(7,))
    without = replace(found, background="class 1")
    drawn = evidence_of(without, np.arange(12), MANY)
    assert (found.labels == "class 1").any()
    for i, (*_, numbers, for_label, for_second) in drawn.details.items():
        assert (for_label is None) == (found.labels[i] == "class 1")
        assert (for_second is None) == (found.second_label[i] in (None, "class 1"))
        if for_label is None and for_second is not None:  # what speaks for the second label comes first
            assert for_second == sorted(for_second, reverse=True)
        assert len(set(numbers)) == 12
    weights = found.bags.spread(found.posterior[:, 1])
    expected = weights @ found.bags.instances / weights.sum()
    assert np.allclose(typical_instances(without)[1], expected, atol=1e-5)
    assert np.allclose(typical_instances(without)[[0, 2]], typical_instances(found)[[0, 2]])
