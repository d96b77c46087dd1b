"""A picture of a data set: bags as rows, the candidate labels of each beside it, the true one marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.errors import ParameterError
from mipl.io.atomic import atomic_path, check_writable
from mipl.plotting.instances import draw_pixels, is_image, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "draw"]

#: The suffixes of pictures.
PICTURES = (".png", ".svg", ".pdf")
_TRUE = "#1b7837"
_FALSE = "#9a9a9a"
_ACROSS, _DOWN = 24, 4  # images in a line of a bag, and lines of a bag
_LINES = 5  # candidate labels that fit beside a bag


def draw(dataset: MIPLDataset, path: str | Path, n_bags: int = 6) -> Path:
    """Draw `n_bags` bags, of different classes as far as there are, and save the picture.

    Images, (h, w) or (h, w, 3), are shown as they are, the first 96 of a bag. Other instances are columns of a heat map
    with one row per feature, each scaled to its range over the data set without outliers. Positive instances are framed
    or marked where the data set knows them.

    Parameters
    ----------
    dataset : MIPLDataset
        Where the bags come from.
    path : str or Path
        Where to save; the suffix (.png, .svg, .pdf) chooses the format.
    n_bags : int, default=6
        How many bags are shown at most.
    """
    from matplotlib.figure import Figure

    if n_bags < 1:
        raise ParameterError(f"n_bags={n_bags}; a picture shows at least one bag")
    check_writable(path, PICTURES)
    shown = _one_of_each_class(dataset)[:n_bags]
    images = is_image(dataset.bags.instance_shape)
    largest = int(dataset.bags.sizes[shown].max())
    across = min(_ACROSS, largest) if images else largest
    # Inches: a line of images is 0.32 high, a line of text 0.2; the labels get as much width as the longest name needs.
    n_labels = np.minimum(dataset.candidates[shown].sum(axis=1), _LINES)
    n_lines = np.minimum(-(-dataset.bags.sizes[shown] // across), _DOWN)
    heights = np.maximum(0.32 * n_lines if images else 0.95, 0.2 * n_labels)
    left = 0.5 + 0.085 * max(len(str(name)) for name in dataset.classes)
    right = 0.32 * across if images else 7.5
    width, height = max(left + right, 7.6), 0.75 + heights.sum() + 0.16 * len(shown)
    figure = Figure(figsize=(width, height), dpi=150)
    draw_bag = _draw_images if images else _draw_heat_map
    limits = value_range(dataset.bags) if images else _range_of_features(dataset.bags.instances)
    top = height - 0.65
    for i, bag_height in zip(shown, heights, strict=True):
        top -= bag_height
        _write_candidates(figure.add_axes((0, top / height, left / width, bag_height / height)), dataset, i)
        axes = figure.add_axes((left / width, top / height, (right - 0.1) / width, bag_height / height))
        draw_bag(axes, dataset, i, across, limits)
        top -= 0.16
    _write_title(figure, dataset, images)
    with atomic_path(path) as part:
        figure.savefig(part, format=Path(path).suffix[1:].lower())
    return Path(path)


def _one_of_each_class(dataset: MIPLDataset) -> NDArray[np.int64]:
    """All bags, the first of each class first, then the second of each, and so on."""
    if dataset.labels is None:
        return np.arange(len(dataset))
    order = np.argsort(dataset.labels, kind="stable")
    starts = np.searchsorted(dataset.labels[order], dataset.labels[order])
    return order[np.lexsort((dataset.labels[order], np.arange(len(order)) - starts))]


def _positive(dataset: MIPLDataset, i: int) -> NDArray[np.int64]:
    """Which instances of bag i are known to be of a class."""
    if dataset.instance_labels is None:
        return np.empty(0, dtype=np.int64)
    labels = dataset.instance_labels[dataset.bags.offsets[i] : dataset.bags.offsets[i + 1]]
    return np.flatnonzero((labels >= 0) & (labels < dataset.n_classes))


def _range_of_features(X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What is drawn lightest and darkest in a heat map: the range of each feature (d,) without its outliers."""
    low, high = np.quantile(X, (0.01, 0.99), axis=0)
    flat = high <= low  # a feature that is nearly always zero, such as a rare word
    return np.where(flat, X.min(axis=0), low), np.where(flat, X.max(axis=0), high)


def _draw_images(axes: Axes, dataset: MIPLDataset, i: int, across: int, limits: tuple[Any, Any]) -> None:
    """Bag i as lines of images in one mosaic, positive ones framed."""
    from matplotlib.patches import Rectangle

    height, width, *colours = dataset.bags.instance_shape
    images = dataset.bags[i][: _DOWN * across].reshape(-1, height, width, *colours)
    lines = -(-len(images) // across)
    tiles = np.full((lines * across, height, width, *colours), np.nan, dtype=np.float32)
    tiles[: len(images)] = images
    mosaic = tiles.reshape(lines, across, height, width, *colours).swapaxes(1, 2)
    draw_pixels(axes, mosaic.reshape(lines * height, across * width, *colours), limits)
    axes.set_anchor("W")
    axes.axis("off")
    positive = _positive(dataset, i)
    for j in positive[positive < len(images)]:
        line, column = divmod(int(j), across)
        corner = column * width - 0.5, line * height - 0.5
        axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=_TRUE, linewidth=1.6, clip_on=False))


def _draw_heat_map(axes: Axes, dataset: MIPLDataset, i: int, across: int, limits: tuple[Any, Any]) -> None:
    """Bag i with one column per instance and one row per feature; a mark above each positive column."""
    low, high = limits
    values = (dataset.bags[i] - low) / np.where(high > low, high - low, 1)
    axes.imshow(values.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(xlim=(-0.5, across - 0.5), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    positive = _positive(dataset, i)
    axes.plot(positive, np.full(len(positive), -0.5), "v", color=_TRUE, markersize=6, clip_on=False)


def _write_candidates(axes: Axes, dataset: MIPLDataset, i: int) -> None:
    """The candidate labels of bag i under each other, the true one first."""
    axes.axis("off")
    truth = -1 if dataset.labels is None else int(dataset.labels[i])
    others = [c for c in np.flatnonzero(dataset.candidates[i]) if c != truth]
    lines = [(f"✓ {dataset.classes[truth]}", _TRUE, "bold")] if truth >= 0 else []
    lines += [(str(dataset.classes[c]), _FALSE, "normal") for c in others]
    if len(lines) > _LINES:
        lines[_LINES - 1 :] = [(f"and {len(lines) - _LINES + 1} more", _FALSE, "normal")]
    for k, (text, colour, weight) in enumerate(lines):
        place = 0.92, 0.5 + ((len(lines) - 1) / 2 - k) / len(lines)
        axes.text(*place, text, ha="right", va="center", fontsize=9, color=colour, weight=weight, parse_math=False)


def _write_title(figure: Figure, dataset: MIPLDataset, images: bool) -> None:
    summary = dataset.summary()
    title = (
        f"{dataset.name or 'data set'}: {summary['bags']:,} bags, {summary['instances']:,} instances, "
        f"{summary['classes']} classes, {summary['candidates']:g} candidate labels per bag"
    )
    legend = "A row is a bag" if images else "A row is a bag, a column an instance, a line a feature"
    legend += "; at the left its candidate labels" + ("." if dataset.labels is None else ", the true one with ✓.")
    if dataset.instance_labels is not None:
        legend += " Positive instances are framed." if images else " Positive instances have a ▼."
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.2 / height, title, fontsize=10.5, weight="bold", va="center")
    figure.text(0.01, 1 - 0.42 / height, legend, fontsize=8.5, color="#555555", va="center")
