"""Pixels of images: opened with Pillow, coloured, cut into patches."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import first_line

__all__ = ["coloured", "open_image", "patches", "pixels_of"]

_PATCH = 32


def open_image(source: Path | bytes, where: str, size: int | None) -> NDArray[np.float32]:
    """Pixels (h, w) or (h, w, 3), from 0 to 1, of a file or its content, turned as a camera says that they are.

    Parameters
    ----------
    source : Path or bytes
        The image.
    where : str
        What an error calls it.
    size : int or None
        Height and width to which it is resized; None leaves it as it is.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as opened:
            image = ImageOps.exif_transpose(opened)
            deep = image.mode in ("I;16", "I", "F")
            picture: Any = image if image.mode in ("L", "I;16", "I", "F") else image.convert(_mode(image.mode))
            if size is not None:
                picture = picture.resize((size, size))
            pixels = np.asarray(picture, dtype=np.float32)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{where} cannot be read as an image ({first_line(error)})") from error
    return pixels / (np.float32(65535) if deep and pixels.max(initial=0) > 255 else np.float32(255))


def _mode(mode: str) -> str:
    return "L" if mode in ("1", "LA") else "RGB"


def coloured(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """An image (h, w) or (h, w, 3) with three channels."""
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def patches(where: str, pixels: NDArray[np.float32], patch: int | None) -> tuple[NDArray[np.float32], list[str]]:
    """All patches (n, p, p[, 3]) of an image row by row, and where each one is: ``y0x32``; p is 32 for None.

    They cover the whole image: where its height or width is no multiple of p, the last ones overlap those before.
    """
    patch = patch or _PATCH
    height, width = pixels.shape[:2]
    if min(height, width) < patch:
        raise DataError(
            f"{where} has {pixels_of(pixels.shape)} pixels, which is less than one patch of {patch}; "
            f"pass a smaller patch=N (--patch N) or resize with size=N (--size N)"
        )
    down, across = ([*range(0, side - patch, patch), side - patch] for side in (height, width))
    corners = [(y, x) for y in down for x in across]
    cut = np.stack([pixels[y : y + patch, x : x + patch] for y, x in corners])
    return cut, [f"y{y}x{x}" for y, x in corners]


def pixels_of(shape: tuple[int, ...]) -> str:
    """Height, width and channels as a message has them."""
    return " x ".join(map(str, shape))
