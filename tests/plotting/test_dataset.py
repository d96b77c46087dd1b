"""The picture of a data set shows what it should: bags of all classes, positives marked, candidates beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle

import mipl
from mipl import MIPLError
from mipl.datasets import from_bags, make_bags
from mipl.plotting.dataset import draw


def texts(figure: Figure) -> list[list[str]]:
    return [[text.get_text() for text in axes.texts] for axes in figure.axes if axes.texts]


def test_images_are_drawn_as_they_are_and_each_positive_is_framed(figures: list[Figure], tmp_path: Path) -> None:
    ds = mipl.load("digits", r=2)
    path = draw(ds, tmp_path / "digits.png", n_bags=5)
    first_of_each = [int(np.flatnonzero(ds.labels == c)[0]) for c in range(5)]
    panels = [axes for axes in figures[0].axes if axes.images]
    for i, axes in zip(first_of_each, panels, strict=True):
        shown = np.concatenate(
            np.split(axes.images[0].get_array().filled(-1), axes.images[0].get_size()[1] // 8, axis=1)
        )
        assert np.array_equal(shown[: 8 * ds.bags.sizes[i]].reshape(-1, 64), ds.bags[i])
        frames = sorted(patch.get_x() for patch in axes.patches if isinstance(patch, Rectangle))
        labels = ds.instance_labels[ds.bags.offsets[i] : ds.bags.offsets[i + 1]]
        assert frames == (8 * np.flatnonzero(labels < 5) - 0.5).tolist()
    assert imread(path).std() > 0.05


def test_candidates_stand_beside_the_bag_and_the_true_one_is_marked(figures: list[Figure], tmp_path: Path) -> None:
    ds = mipl.load("digits", r=2)
    draw(ds, tmp_path / "digits.png", n_bags=3)
    for c, lines in enumerate(texts(figures[0])):
        i = np.flatnonzero(ds.labels == c)[0]
        assert lines[0] == f"✓ {ds.classes[c]}"
        assert {lines[0].removeprefix("✓ "), *lines[1:]} == set(ds.classes[ds.candidates[i]])


def test_long_candidate_lists_are_cut_and_unknown_labels_are_not_marked(figures: list[Figure], tmp_path: Path) -> None:
    ds = from_bags(np.random.default_rng(0).random((3, 4, 6)), [0, 1, 2], 8, classes=range(9))
    draw(ds, tmp_path / "known.png")
    assert texts(figures[0])[0][-1] == "and 5 more"
    unknown = mipl.MIPLDataset(ds.bags, ds.candidates)
    draw(unknown, tmp_path / "unknown.png")
    assert "✓" not in str(texts(figures[1]))


def test_other_instances_become_a_heat_map_with_a_mark_for_each_positive(figures: list[Figure], tmp_path: Path) -> None:
    ds = make_bags(n_bags=10, n_features=7)
    draw(ds, tmp_path / "gaussians.svg", n_bags=2)
    for c, axes in enumerate(axes for axes in figures[0].axes if axes.images):
        i = np.flatnonzero(ds.labels == c)[0]
        assert axes.images[0].get_array().shape == (7, ds.bags.sizes[i])
        labels = ds.instance_labels[ds.bags.offsets[i] : ds.bags.offsets[i + 1]]
        assert axes.lines[0].get_xdata().tolist() == np.flatnonzero(labels < 5).tolist()


@pytest.mark.parametrize(
    ("file", "n_bags", "message"),
    [("x.png", 0, "at least one bag"), ("x.txt", 1, "one of .png"), ("no/x.png", 1, "does not exist")],
)
def test_a_picture_that_cannot_be_drawn_is_a_clear_error(file: str, n_bags: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(MIPLError, match=message):
        draw(make_bags(), tmp_path / file, n_bags=n_bags)


def test_a_huge_bag_of_images_shows_its_first_lines(figures: list[Figure], tmp_path: Path) -> None:
    bags = mipl.Bags.from_list([np.random.default_rng(0).random((1000, 3, 5))] * 2)
    labels = np.tile(np.arange(1000) % 2, 2)
    draw(from_bags(bags, ["a", "b"], instance_labels=labels), tmp_path / "huge.png")
    panel = next(axes for axes in figures[0].axes if axes.images)
    assert panel.images[0].get_size() == (4 * 3, 24 * 5)
    assert len(panel.patches) == 96


def test_colour_images_are_drawn_in_colour(figures: list[Figure], tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 5, 3))
    ds = from_bags(mipl.Bags.from_list(list(images)), ["a", "b"])
    draw(ds, tmp_path / "colour.png", n_bags=1)
    panel = next(axes for axes in figures[0].axes if axes.images)
    shown = panel.images[0].get_array()
    assert shown.shape == (4, 3 * 5, 3)
    np.testing.assert_allclose(shown, np.concatenate(images[0], axis=1) / 255, atol=1e-6)
