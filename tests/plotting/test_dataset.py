"""The picture of a data set shows what it should: bags of all classes, positives marked, candidates beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
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


def test_other_instances_become_profiles_of_their_features_and_positive_ones_are_framed(
    figures: list[Figure], tmp_path: Path
) -> None:
    ds = make_bags(n_bags=10, n_features=7)
    draw(ds, tmp_path / "gaussians.svg", n_bags=2)
    low, high = np.quantile(ds.bags.instances, [0.01, 0.99])  # beyond them the scale ends
    for c, axes in enumerate(axes for axes in figures[0].axes if axes.lines):
        i = np.flatnonzero(ds.labels == c)[0]
        assert len(axes.lines) == len(axes.patches) == min(16, ds.bags.sizes[i])
        # Higher values are drawn higher: a curve goes through the features in the order of their sizes.
        for line, instance in zip(axes.lines, ds.bags[i], strict=False):
            inner = (instance > low) & (instance < high)
            heights = -line.get_ydata()[inner]
            assert (np.argsort(heights) == np.argsort(instance[inner])).all()
        labels = ds.instance_labels[ds.bags.offsets[i] : ds.bags.offsets[i + 1]]
        framed = [j for j, patch in enumerate(axes.patches) if patch.get_linewidth() > 1]
        assert framed == np.flatnonzero(labels < 5)[:16].tolist()


def texts_bags() -> mipl.MIPLDataset:
    words = ["hockey", "goal", "$team$", "orbit", "nasa", "launch", "god", "faith", "prayer", "x" * 300]
    X = np.zeros((4, 10), dtype=np.float32)
    X[0, [0, 1, 2]], X[1, [3, 4]], X[2, 9], X[3, [7, 6]] = (1, 3, 2), (1, 2), 1, (5, 1)
    bags = mipl.Bags(X, [0, 2, 4], feature_names=words)
    return mipl.MIPLDataset(bags, [{"sport", "space"}, {"space", "faith"}], instance_labels=[2, 3, 3, 3])


def test_features_that_are_words_are_written_heaviest_first(figures: list[Figure], tmp_path: Path) -> None:
    draw(texts_bags(), tmp_path / "words.png")
    written = texts(figures[0])
    assert written[1] == ["▶ goal $team$ hockey", "· nasa orbit"]
    assert written[3][1] == "· faith god"
    assert written[3][0].startswith("· xxxx")
    assert len(written[3][0]) < 150
    assert not any(axes.images or axes.lines for axes in figures[0].axes)


def test_names_of_any_length_and_alphabet_stay_in_their_place(figures: list[Figure], tmp_path: Path) -> None:
    names = ["W" * 80, "Western meadowlark (Sturnella neglecta), juvenile", "$\\frac{$ \x1b[31m", "猫" * 40, "a\nb"]
    ds = make_bags(n_bags=10)
    named = mipl.MIPLDataset(ds.bags, ds.candidates, labels=ds.labels, classes=names, name="$\\frac{$")
    draw(named, tmp_path / "long.png", n_bags=5)
    figure = figures[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    curves = min(axes.get_window_extent(renderer).x0 for axes in figure.axes if axes.lines)
    for axes in figure.axes:
        for text in axes.texts:
            extent = text.get_window_extent(renderer)
            assert 0 <= extent.x0 < extent.x1 <= curves
            assert "\n" not in text.get_text()


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
    parted = [segment[0][0] for lines in panel.collections for segment in lines.get_segments()]
    assert parted == [4.5, 9.5]
    np.testing.assert_allclose(shown, np.concatenate(images[0], axis=1) / 255, atol=1e-6)
