"""A picture of a data set: bags as rows, the candidate labels of each beside it, the true one marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.errors import ParameterError
from mipl.io.atomic import atomic_path, check_writable
from mipl.plotting.instances import draw_pixels, heaviest_words, is_image, is_text, value_range
from mipl.plotting.labels import fitted, width_of
from mipl.plotting.profiles import ProfileScale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "draw"]

#: The suffixes of pictures.
PICTURES = (".png", ".svg", ".pdf")
_TRUE = "#1b7837"
_FALSE = "#9a9a9a"
_DRAWN = "#2b5c8a"
_ACROSS, _DOWN = 24, 4  # images in a line of a bag, and lines of a bag
_PROFILES, _PROFILE_LINES = 8, 2  # the same of profiles
_TEXTS, _WORDS = 4, 14  # instances of a bag that are written as words, and words of an instance
_LINES = 5  # candidate labels that fit beside a bag
_NAMES = 2.6  # inches for the longest of them
_ROOM = 7.5  # inches for profiles and words
_SIZE = 9.0  # points


def draw(dataset: MIPLDataset, path: str | Path, n_bags: int = 6) -> Path:
    """Draw `n_bags` bags, of different classes as far as there are, and save the picture.

    Images, (h, w) or (h, w, 3), are shown as they are, the first 96 of a bag. Features that are words are written out,
    the heaviest of four instances of a bag, positive ones first. Other instances are drawn as profiles, the first 16 of
    a bag: a line through all features, on one scale. Positive instances are marked where the data set knows them.

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
    drawing = _drawing_of(dataset, int(dataset.bags.sizes[shown].max()))
    names = [_candidate_lines(dataset, i) for i in shown]
    # Inches: a line of text is 0.2 high; names get as much width as the longest needs.
    heights = np.maximum([drawing.height(int(dataset.bags.sizes[i])) for i in shown], [0.2 * len(n) for n in names])
    left = 0.35 + max((width_of(text, _SIZE, "bold") for lines in names for text, _, _ in lines), default=0)
    width, height = max(left + drawing.width, 7.6), 0.75 + heights.sum() + 0.16 * len(shown)
    figure = Figure(figsize=(width, height), dpi=150)
    top = height - 0.65
    for i, lines, bag_height in zip(shown, names, heights, strict=True):
        top -= bag_height
        _write_candidates(figure.add_axes((0, top / height, left / width, bag_height / height)), lines, bag_height)
        axes = figure.add_axes((left / width, top / height, (drawing.width - 0.1) / width, bag_height / height))
        drawing.draw(axes, dataset.bags[i], _positive(dataset, i))
        top -= 0.16
    _write_title(figure, dataset, drawing)
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


# -------------------------------------------------------------------- how a bag is drawn


class _Images:
    """A bag as lines of images in one mosaic, positive ones framed."""

    legend, positives = "A row is a bag", " Positive instances are framed."

    def __init__(self, dataset: MIPLDataset, largest: int) -> None:
        self._shape, self._limits = dataset.bags.instance_shape, value_range(dataset.bags)
        self._across = min(_ACROSS, largest)
        self.width = 0.32 * self._across

    def height(self, size: int) -> float:
        return 0.32 * min(-(-size // self._across), _DOWN)

    def draw(self, axes: Axes, bag: NDArray[np.float32], positive: NDArray[np.int64]) -> None:
        from matplotlib.patches import Rectangle

        across, (height, width, *colours) = self._across, self._shape
        images = bag[: _DOWN * across].reshape(-1, height, width, *colours)
        lines = -(-len(images) // across)
        tiles = np.full((lines * across, height, width, *colours), np.nan, dtype=np.float32)
        tiles[: len(images)] = images
        mosaic = tiles.reshape(lines, across, height, width, *colours).swapaxes(1, 2)
        draw_pixels(axes, mosaic.reshape(lines * height, across * width, *colours), self._limits)
        # White lines part images that lie side by side, so that patches of a photograph are not taken for one.
        axes.vlines(np.arange(1, across) * width - 0.5, -0.5, lines * height - 0.5, colors="white", linewidth=1)
        axes.hlines(np.arange(1, lines) * height - 0.5, -0.5, across * width - 0.5, colors="white", linewidth=1)
        axes.set_anchor("W")
        axes.axis("off")
        for j in positive[positive < len(images)]:
            line, column = divmod(int(j), across)
            corner = column * width - 0.5, line * height - 0.5
            axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=_TRUE, linewidth=1.6, clip_on=False))


class _Profiles:
    """A bag as lines of small curves, one per instance, through the values of its features; positive ones framed."""

    legend, positives = "A row is a bag, a curve an instance", " Positive instances are framed."

    def __init__(self, dataset: MIPLDataset, largest: int) -> None:
        self._scale = ProfileScale(dataset.bags)
        self._across = min(_PROFILES, largest)
        self.width = _ROOM

    def height(self, size: int) -> float:
        return 0.55 * min(-(-size // self._across), _PROFILE_LINES)

    def draw(self, axes: Axes, bag: NDArray[np.float32], positive: NDArray[np.int64]) -> None:
        from matplotlib.patches import Rectangle

        curves = self._scale.heights(bag[: self._across * _PROFILE_LINES])
        lines = -(-len(curves) // self._across)
        axes.set(xlim=(0, _PROFILES), ylim=(lines, 0))
        axes.axis("off")
        x = np.linspace(0.06, 0.9, max(2, curves.shape[1]))
        for j, curve in enumerate(curves):
            line, column = divmod(j, self._across)
            known = j in positive
            colour, thick = (_TRUE, 1.6) if known else ("#dddddd", 0.6)
            place = (column, line + 0.04)
            axes.add_patch(Rectangle(place, 0.96, 0.92, fill=False, clip_on=False, edgecolor=colour, linewidth=thick))
            y = np.resize(curve, len(x))  # a single feature is a level line
            axes.plot(column + x, line + 0.88 - 0.76 * y, color=_TRUE if known else _DRAWN, linewidth=0.9)


class _Words:
    """A bag as lines of words, one per instance, heaviest words first; positive instances first and marked."""

    legend, positives = "A row is a bag, a line the heaviest words of an instance", " Positive instances have a ▶."

    def __init__(self, dataset: MIPLDataset, largest: int) -> None:
        self._names = dataset.bags.feature_names or ()
        self.width = _ROOM

    def height(self, size: int) -> float:
        return 0.2 * min(size, _TEXTS)

    def draw(self, axes: Axes, bag: NDArray[np.float32], positive: NDArray[np.int64]) -> None:
        axes.axis("off")
        known = set(positive.tolist())
        shown = sorted(range(len(bag)), key=lambda j: j not in known)[:_TEXTS]
        for k, j in enumerate(shown):
            words = " ".join(heaviest_words(bag[j], self._names, _WORDS)) or "(no word)"
            text = fitted(f"{'▶' if j in known else '·'} {words}", _ROOM - 0.3, _SIZE)
            y = 1 - (k + 0.5) / len(shown)
            axes.text(0, y, text, fontsize=_SIZE, va="center", color=_TRUE if j in known else "black", parse_math=False)


def _drawing_of(dataset: MIPLDataset, largest: int) -> _Images | _Profiles | _Words:
    if is_image(dataset.bags.instance_shape):
        return _Images(dataset, largest)
    return _Words(dataset, largest) if is_text(dataset.bags) else _Profiles(dataset, largest)


# -------------------------------------------------------------------- words


def _candidate_lines(dataset: MIPLDataset, i: int) -> list[tuple[str, str, str]]:
    """The candidate labels of bag i, the true one first, each with its colour and weight."""
    truth = -1 if dataset.labels is None else int(dataset.labels[i])
    others = [c for c in np.flatnonzero(dataset.candidates[i]) if c != truth]
    lines = [(f"✓ {dataset.classes[truth]}", _TRUE, "bold")] if truth >= 0 else []
    lines += [(str(dataset.classes[c]), _FALSE, "normal") for c in others]
    if len(lines) > _LINES:
        lines[_LINES - 1 :] = [(f"and {len(lines) - _LINES + 1} more", _FALSE, "normal")]
    return [(fitted(text, _NAMES, _SIZE, weight), colour, weight) for text, colour, weight in lines]


def _write_candidates(axes: Axes, lines: list[tuple[str, str, str]], height: float) -> None:
    """Lines under each other in the middle of a place of this height, at its right."""
    axes.axis("off")
    for k, (text, colour, weight) in enumerate(lines):
        place = 0.95, 0.5 + ((len(lines) - 1) / 2 - k) * 0.2 / height
        axes.text(*place, text, ha="right", va="center", fontsize=_SIZE, color=colour, weight=weight, parse_math=False)


def _write_title(figure: Figure, dataset: MIPLDataset, drawing: _Images | _Profiles | _Words) -> None:
    summary = dataset.summary()
    title = (
        f"{fitted(dataset.name or 'data set', 2.5, 10.5, 'bold')}: {summary['bags']:,} bags, "
        f"{summary['instances']:,} instances, {summary['classes']} classes, "
        f"{summary['candidates']:.3g} candidate labels per bag"
    )
    legend = f"{drawing.legend}; at the left its candidate labels"
    legend += "." if dataset.labels is None else ", the true one with ✓."
    if dataset.instance_labels is not None:
        legend += drawing.positives
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.2 / height, title, fontsize=10.5, weight="bold", va="center", parse_math=False)
    figure.text(0.01, 1 - 0.42 / height, legend, fontsize=8.5, color="#555555", va="center")
