"""How one instance is drawn: as an image where it is one, else as a tile of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_instance", "draw_pixels", "is_image", "value_range"]

Range = tuple[float, float]


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether instances of this shape are images: (h, w) in grey, (h, w, 3) in colour.

    >>> is_image((28, 28)), is_image((8, 8, 3)), is_image((30,))
    (True, True, False)
    """
    return len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)


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


def draw_instance(axes: Axes, instance: NDArray[np.float32], shape: tuple[int, ...], limits: Range) -> None:
    """Draw one instance (d,) of the given shape."""
    if is_image(shape):
        draw_pixels(axes, instance.reshape(shape), limits)
        return
    side = int(np.ceil(np.sqrt(len(instance))))
    tile = np.full(side * side, np.nan)
    tile[: len(instance)] = instance
    axes.imshow(tile.reshape(side, side), cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="nearest")
