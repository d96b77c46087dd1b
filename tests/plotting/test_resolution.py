"""The picture of a Resolution: the right words beside each bag, the right instances, the right one framed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from mipl import Bags, MIPLError, Resolution

GREEN, RED = "#1b7837", "#b2182b"


def resolution(shape: tuple[int, ...] = (2, 2), **changes: Any) -> Resolution:
    """Two bags of 2 and 5 images; the labels bee and cat come from their last instances, the second is wrong."""
    X = np.random.default_rng(0).random((7, int(np.prod(shape)))).astype(np.float32)
    instances = np.full((7, 4), 0.1)
    instances[[1, 6], [1, 2]] = 0.9
    parts: dict[str, Any] = {
        "classes": np.array(["ant", "bee", "cat"]),
        "bags": Bags(X, [0, 2, 7], shape),
        "bag_ids": np.array(["x", "y"]),
        "posterior": np.array([[0.2, 0.8, 0.0], [0.0, 0.25, 0.75]]),
        "instance_probabilities": instances,
        "candidates": np.array([[True, True, False], [False, True, True]]),
        "truth": np.array(["bee", "bee"], dtype=object),
    }
    return Resolution(**parts | changes)


def words(figure: Figure) -> list[list[str]]:
    """What is written beside the bags."""
    return [[text.get_text() for text in axes.texts] for axes in figure.axes if axes.texts and not axes.axison]


def rows_of_panels(figure: Figure) -> list[list[Axes]]:
    """The panels of instances, bag by bag: those with a frame, from the top and the left."""
    rows: dict[float, list[Axes]] = {}
    for axes in figure.axes:
        if axes.axison:
            rows.setdefault(round(axes.get_position().y0, 6), []).append(axes)
    return [sorted(rows[y], key=lambda axes: axes.get_position().x0) for y in sorted(rows, reverse=True)]


def frame(axes: Axes) -> str | None:
    """The colour of a frame, None where there is only a thin line."""
    spine = axes.spines["left"]
    return to_hex(spine.get_edgecolor()) if spine.get_linewidth() > 2 else None


def test_candidates_label_probability_and_truth_stand_beside_each_bag(figures: list[Figure], tmp_path: Path):
    path = resolution().plot(tmp_path / "x.png")
    assert words(figures[0]) == [
        ["bag x: {ant, bee}", "→ bee  0.800  ✓"],
        ["bag y: {bee, cat}", "→ cat  0.750  ✗ true: bee"],
    ]
    assert imread(path).std() > 0.05


def test_the_instance_behind_each_label_is_framed_red_where_the_label_is_wrong(figures: list[Figure], tmp_path: Path):
    resolution().plot(tmp_path / "x.svg")
    first, second = rows_of_panels(figures[0])
    assert [frame(axes) for axes in first] == [None, GREEN]
    assert [frame(axes) for axes in second] == [None, None, None, None, RED]


def test_every_instance_is_drawn_in_its_place(figures: list[Figure], tmp_path: Path):
    found = resolution()
    found.plot(tmp_path / "x.png")
    for bag, panels in zip(found.bags, rows_of_panels(figures[0]), strict=True):
        for instance, axes in zip(bag, panels, strict=True):
            np.testing.assert_array_equal(axes.images[0].get_array(), instance.reshape(2, 2))


def test_without_candidates_and_truth_neither_is_spoken_of(figures: list[Figure], tmp_path: Path):
    resolution(candidates=None, truth=None).plot(tmp_path / "x.png")
    assert words(figures[0]) == [["bag x", "→ bee  0.800"], ["bag y", "→ cat  0.750"]]
    assert "candidates" not in figures[0].get_suptitle()
    assert frame(rows_of_panels(figures[0])[1][-1]) == GREEN


def test_in_a_large_bag_the_framed_instance_is_always_shown(figures: list[Figure], tmp_path: Path):
    from mipl.plotting.resolution import draw_resolved

    found = resolution()
    draw_resolved(found, tmp_path / "x.png", max_instances=3)
    panels = rows_of_panels(figures[0])[1]
    assert [frame(axes) for axes in panels] == [None, None, RED]
    np.testing.assert_array_equal(panels[-1].images[0].get_array(), found.bags[1][4].reshape(2, 2))


def test_as_many_bags_are_shown_as_asked_for(figures: list[Figure], tmp_path: Path):
    resolution().plot(tmp_path / "x.png", n_bags=1)
    assert len(rows_of_panels(figures[0])) == 1
    assert len(figures[0].axes) == 1 + 2


@pytest.mark.parametrize(("scale", "top"), [(1.0, 1.0), (200.0, 255.0)])
def test_colour_images_are_drawn_in_colour(figures: list[Figure], tmp_path: Path, scale: float, top: float):
    found = resolution((2, 4, 3))
    found = resolution((2, 4, 3), bags=Bags(found.bags.instances * scale, found.offsets, (2, 4, 3)))
    found.plot(tmp_path / "x.png")
    shown = rows_of_panels(figures[0])[0][1].images[0].get_array()
    np.testing.assert_allclose(shown, found.bags[0][1].reshape(2, 4, 3) / top, rtol=1e-5)


def test_other_instances_are_profiles_on_one_scale(figures: list[Figure], tmp_path: Path):
    found = resolution((5,))
    found.plot(tmp_path / "x.png")
    panels = [axes for row in rows_of_panels(figures[0]) for axes in row]
    drawn = np.array([axes.lines[-1].get_ydata() for axes in panels])
    values = found.bags.instances
    low, high = np.percentile(values, [0.5, 99.5])
    np.testing.assert_allclose(drawn, np.clip((values - low) / (high - low), 0, 1), rtol=1e-5)
    assert len({axes.get_ylim() for axes in panels}) == 1


def test_features_that_are_words_are_written_in_the_tiles(figures: list[Figure], tmp_path: Path):
    vocabulary = [f"word{j}" for j in range(9)]
    X = np.zeros((7, 9), dtype=np.float32)
    X[np.arange(7), np.arange(7)], X[0, 8] = 1, 2
    resolution(bags=Bags(X, [0, 2, 7], feature_names=vocabulary)).plot(tmp_path / "x.png")
    first = rows_of_panels(figures[0])[0]
    assert [[text.get_text() for text in axes.texts] for axes in first] == [["word8", "word0"], ["word1"]]


def test_long_names_and_ids_do_not_run_into_the_instances(figures: list[Figure], tmp_path: Path):
    names = np.array(["W" * 60, "Western meadowlark (Sturnella neglecta)", "a\x1b[31m\nb"])
    ids = np.array(["recording " * 20, "y"])
    resolution(classes=names, bag_ids=ids, truth=np.array([names[2]] * 2, dtype=object)).plot(tmp_path / "x.png")
    renderer = FigureCanvasAgg(figures[0]).get_renderer()
    tiles = min(axes.get_window_extent(renderer).x0 for row in rows_of_panels(figures[0]) for axes in row)
    written = [text for axes in figures[0].axes if not axes.axison for text in axes.texts]
    assert all(text.get_window_extent(renderer).x1 <= tiles for text in written)
    assert not any("\n" in text.get_text() or "\x1b" in text.get_text() for text in written)


def test_names_with_signs_of_mathematics_are_written_as_they_are(figures: list[Figure], tmp_path: Path):
    resolution(classes=np.array(["$a", "b$^", "{c}"]), truth=None).plot(tmp_path / "x.png")
    assert words(figures[0])[0] == ["bag x: {$a, b$^}", "→ b$^  0.800"]


def test_many_candidates_are_cut_short(figures: list[Figure], tmp_path: Path):
    q = 9
    resolution(
        classes=np.arange(q),
        posterior=np.full((2, q), 1 / q),
        instance_probabilities=np.zeros((7, q + 1)),
        candidates=np.ones((2, q), dtype=bool),
        truth=None,
    ).plot(tmp_path / "x.png")
    assert words(figures[0])[0][0] == "bag x: {0, 1, 2, 3, and 5 more}"


@pytest.mark.parametrize(
    ("file", "n_bags", "message"),
    [
        ("x.png", 0, "n_bags=0; a picture shows at least one"),
        ("x.csv", 1, r"one of \.png"),
        ("no/x.png", 1, "not exist"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_a_clear_error(file: str, n_bags: int, message: str, tmp_path: Path):
    with pytest.raises(MIPLError, match=message):
        resolution().plot(tmp_path / file, n_bags=n_bags)


def test_nothing_is_framed_for_the_background_class_and_the_title_says_so(figures: list[Figure], tmp_path: Path):
    resolution(background="bee").plot(tmp_path / "x.png")
    first, second = rows_of_panels(figures[0])
    assert [frame(axes) for axes in first] == [None, None]
    assert [frame(axes) for axes in second].count(RED) == 1
    assert "framed: the instance behind it (none for bee, the background)" in figures[0].get_suptitle()
    resolution(background="ant").plot(tmp_path / "x.png")  # no bag of it is shown
    assert "background" not in figures[1].get_suptitle()
