"""How one instance is drawn: as an image, as the profile of its features, or as its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.plotting.labels import fitted
from mipl.plotting.profiles import ProfileScale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Tiles", "draw_pixels", "heaviest_words", "is_image", "is_text", "value_range"]

Range = tuple[float, float]

_FEWEST = 8  # features that a vocabulary has at least
_EMPTY = 0.6  # share of zeros from which named, non-negative features are taken for words
_SAMPLE = 5_000
_LINE = "#2b5c8a"
_WORDS = 4  # in a tile


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether instances of this shape are images: (h, w) in grey, (h, w, 3) in colour.

    >>> is_image((28, 28)), is_image((8, 8, 3)), is_image((30,))
    (True, True, False)
    """
    return len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)


def is_text(bags: Bags) -> bool:
    """Whether the features are words: they have names, no negative values, and are zero most of the time."""
    if bags.feature_names is None or bags.n_features < _FEWEST:
        return False
    sample = bags.instances[:: max(1, bags.n_instances // _SAMPLE)]
    return bool(sample.min() >= 0 and np.mean(sample == 0) >= _EMPTY)


def heaviest_words(instance: NDArray[np.float32], names: Sequence[str], most: int) -> list[str]:
    """The names of the largest features of an instance (d,), at most `most`, without those that are zero."""
    order = np.argsort(-instance, kind="stable")[:most]
    return [names[j] for j in order.tolist() if instance[j] > 0]


def value_range(bags: Bags) -> Range:
    """What is drawn lightest and darkest: the range of the values, that of the format for colours (0 to 1 or 255)."""
    low, high = float(bags.instances.min()), float(bags.instances.max())
    if len(bags.instance_shape) == 3 and low >= 0 and high <= 255:
        return 0.0, 1.0 if high <= 1 else 255.0
    return low, high


def draw_pixels(axes: Axes, pixels: NDArray[np.float32], limits: Range) -> None:
    """Draw (H, W) in grey, dark for large values, or (H, W, 3) in colour; NaN stays white."""
    low, high = limits
    if pixels.ndim == 3:
        shown = np.clip((pixels - low) / max(high - low, 1e-12), 0, 1)
        axes.imshow(np.where(np.isnan(shown), 1, shown), interpolation="nearest")
    else:
        axes.imshow(pixels, cmap="gray_r", vmin=low, vmax=high, interpolation="nearest")


class Tiles:
    """Draws instances one by one, each into axes of its own, all on the same scale.

    Parameters
    ----------
    bags : Bags
        All bags, by which the scale is judged.
    """

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self.kind = "image" if is_image(bags.instance_shape) else "words" if is_text(bags) else "profile"
        self._limits = value_range(bags)
        self._scale = ProfileScale(bags) if self.kind == "profile" else None
        #: Inches of a tile.
        self.width, self.height = {"image": (0.62, 0.62), "words": (1.25, 0.72), "profile": (0.95, 0.62)}[self.kind]

    def draw(self, axes: Axes, instance: NDArray[np.float32]) -> None:
        """Draw one instance (d,)."""
        axes.set(xticks=[], yticks=[])
        if self._scale is not None:
            axes.axhline(self._scale.zero, color="#dddddd", linewidth=0.6)
            curve = self._scale.heights(instance[None])[0]
            # A single feature is a level line.
            axes.plot(np.linspace(0, 1, max(2, len(curve))), np.resize(curve, max(2, len(curve))), _LINE, linewidth=0.9)
            axes.set(ylim=(-0.06, 1.06))
        elif self.kind == "image":
            draw_pixels(axes, instance.reshape(self._bags.instance_shape), self._limits)
        else:
            for i, word in enumerate(heaviest_words(instance, self._bags.feature_names or (), _WORDS)):
                size = 8.0 - 0.6 * i
                text = fitted(word, 0.92 * self.width, size)
                axes.text(0.04, 1 - (i + 0.5) / _WORDS, text, fontsize=size, va="center", parse_math=False)
