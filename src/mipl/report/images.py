"""Images as few sheets of many tiles: PNG in grey, JPEG in colour."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mipl.bags import Bags
from mipl.plotting.instances import value_range

__all__ = ["Images"]

_ACROSS = 16  # tiles in a line of a sheet
_LARGEST = 64  # pixels of the longer side; tiles are shown in this size
_BLOCK = 8  # JPEG packs blocks of 8 x 8 pixels: a tile of whole blocks does not run into its neighbours
_QUALITY = 85
_SAMPLE = 256  # instances by which the size of all is judged


class Images:
    """Grey (h, w) and colour (h, w, 3) instances of n; in grey, large values are dark.

    Parameters
    ----------
    bags : Bags
        With images as instances.
    n_instances : int
        How many instances ask to be drawn.
    budget : int
        Bytes for all of them. Where grey images would take more, they have 16 shades instead of 256.
    """

    def __init__(self, bags: Bags, n_instances: int, budget: int) -> None:
        self._bags = bags
        self._low, self._high = value_range(bags)
        self._colour = len(bags.instance_shape) == 3
        self.kind = "colour" if self._colour else "grey"
        height, width = bags.instance_shape[:2]
        shrink = max(1.0, max(height, width) / _LARGEST)
        self._height, self._width = max(1, round(height / shrink)), max(1, round(width / shrink))
        step = _BLOCK if self._colour else 1
        self._padded = (-(-self._height // step) * step, -(-self._width // step) * step)
        self._coarse = False
        if not self._colour:
            sample = np.linspace(0, bags.n_instances - 1, min(_SAMPLE, bags.n_instances)).astype(np.int64)
            self._coarse = len(self._encode(sample)) / len(sample) * n_instances > budget

    def sheet(self, rows: NDArray[np.int64], label: NDArray[np.int64], second: NDArray[np.int64]) -> str:
        """A data URI of the instances `rows` (k,), line by line in tiles."""
        return self._encode(rows)

    def legend(self) -> dict[str, Any]:
        """The size of a tile in the sheet and of the image in it, and the tiles in a line."""
        return {
            "tile": [self._padded[1], self._padded[0]],
            "image": [self._width, self._height],
            "across": _ACROSS,
            "shades": 16 if self._coarse else 256,
            "shrunk": (self._height, self._width) != self._bags.instance_shape[:2],
        }

    def _encode(self, rows: NDArray[np.int64]) -> str:
        pixels = self._pixels(rows)
        lines = -(-len(rows) // _ACROSS)
        tall, wide = self._padded
        canvas = np.full((lines * _ACROSS, *pixels.shape[1:]), 255, dtype=np.uint8)
        canvas[: len(rows)] = pixels
        depth = pixels.shape[3:]
        canvas = canvas.reshape(lines, _ACROSS, tall, wide, *depth).swapaxes(1, 2)
        canvas = np.ascontiguousarray(canvas.reshape(lines * tall, _ACROSS * wide, *depth))
        file = io.BytesIO()
        if self._colour:
            Image.fromarray(canvas).save(file, "JPEG", quality=_QUALITY, subsampling=0)
        elif self._coarse:
            image = Image.fromarray(canvas // 16)
            image.putpalette([shade * 17 for shade in range(16) for _ in range(3)])
            image.save(file, "PNG", bits=4, optimize=True)
        else:
            Image.fromarray(canvas).save(file, "PNG", optimize=True)
        text = base64.b64encode(file.getvalue()).decode()
        return f"data:image/{'jpeg' if self._colour else 'png'};base64,{text}"

    def _pixels(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The tiles (k, h, w) or (k, h, w, 3) from 0 to 255, their borders repeated up to whole blocks."""
        shape = self._bags.instance_shape
        values = self._bags.instances[rows].reshape(len(rows), *shape)
        scaled = np.clip((values - self._low) / max(self._high - self._low, 1e-12), 0, 1)
        shades = np.rint(255 * (scaled if self._colour else 1 - scaled)).astype(np.uint8)
        if (self._height, self._width) != shape[:2]:
            size = (self._width, self._height)
            shades = np.stack([np.asarray(Image.fromarray(tile).resize(size, Image.Resampling.BOX)) for tile in shades])
        more = [(0, wanted - have) for wanted, have in zip(self._padded, shades.shape[1:3], strict=True)]
        return np.pad(shades, [(0, 0), *more, *([(0, 0)] if self._colour else [])], mode="edge")
