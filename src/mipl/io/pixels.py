"""Pixels of images, opened with Pillow and cut into patches, and columns of images in tables.

A column of images is as Hugging Face's `datasets` writes it: records of ``bytes`` and ``path``, one or a list per row.
Where the bytes are missing, the file is read that the path names. An image per row is an instance where a bag has
several rows. Where every row is a bag of its own it is cut into patches, as an image in a folder is (`mipl.io.images`);
a list of images per row is a bag.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import first_line
from mipl.io.cells import edges, is_list, whole
from mipl.io.options import Columns

__all__ = ["Pixels", "coloured", "has_images", "open_image", "patches", "pixels_of", "with_pixels"]

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


@dataclass(frozen=True)
class Pixels:
    """A table in which images are lists of numbers."""

    table: pa.Table
    remark: str | None = None  #: what was done with the images
    patch_names: NDArray[Any] | None = None  #: where each patch is, for images that were cut


def has_images(schema: pa.Schema) -> bool:
    """Whether a column of a table holds images."""
    return any(_is_image(field.type) or _is_image_list(field.type) for field in schema)


def with_pixels(table: pa.Table, where: str, columns: Columns, bag: str | None, nested: bool | None) -> Pixels:
    """Decode the column of images of a table, if it has one.

    Parameters
    ----------
    table : pyarrow.Table
        Any table.
    where : str
        What errors call the file.
    columns : Columns
        What the user says: `features` chooses one of several columns, `patch` and `size` are for images.
    bag : str or None
        The column that names the bag.
    nested : bool or None
        Whether a row is a bag, where that is known.
    """
    names = [field.name for field in table.schema if _is_image(field.type) or _is_image_list(field.type)]
    ignored = [columns.ignore] if isinstance(columns.ignore, str) else list(columns.ignore or [])
    wanted = [columns.features] if isinstance(columns.features, str) else columns.features
    names = [name for name in names if name not in ignored and (wanted is None or name in wanted)]
    if not names:
        if {"patch", "size"} & columns.said().keys():
            raise DataError(f"{where} has no images; patch and size are for folders and columns of images")
        return Pixels(table)
    if len(names) > 1:
        raise DataError(
            f"{where} has {len(names)} columns of images: {', '.join(map(repr, names))}; say which one with "
            "features=NAME (on the command line --features NAME)"
        )
    name, column = names[0], whole(table, names[0])
    in_lists = is_list(column.type)
    images = column.flatten() if in_lists else column
    opened = [_opened(each, where, i, columns.size) for i, each in enumerate(images.to_pylist())]
    colour = any(pixels.ndim == 3 for pixels in opened)
    opened = [coloured(pixels) if colour else pixels for pixels in opened]
    own_bags = bag is None or len(whole(table, bag).unique()) == table.num_rows
    place = table.column_names.index(name)
    if not in_lists and nested is not False and own_bags:
        cut = [patches(f"{where}: image {i}", pixels, columns.patch) for i, pixels in enumerate(opened)]
        values = _as_lists(np.concatenate([part for part, _ in cut]))
        offsets = np.concatenate([[0], np.cumsum([len(part) for part, _ in cut])]).astype(np.int32)
        bags = pa.ListArray.from_arrays(pa.array(offsets), values)
        remark = f"each image in {name!r} is a bag, cut into patches of {pixels_of(cut[0][0].shape[1:])}"
        return Pixels(table.set_column(place, name, bags), remark, np.array([n for _, found in cut for n in found]))
    for i, pixels in enumerate(opened):
        if pixels.shape != opened[0].shape:
            raise DataError(
                f"{where}: image {i} has {pixels_of(pixels.shape)} pixels, the first {pixels_of(opened[0].shape)}; "
                "pass size=N (--size N) to resize all of them"
            )
    values = _as_lists(np.stack(opened))
    if in_lists:
        values = pa.ListArray.from_arrays(pa.array(edges(column).astype(np.int32)), values)
    return Pixels(table.set_column(place, name, values))


def _is_image(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"bytes", "path"}:
        return False
    return bool(pa.types.is_binary(kind.field("bytes").type) or pa.types.is_large_binary(kind.field("bytes").type))


def _is_image_list(kind: pa.DataType) -> bool:
    return is_list(kind) and _is_image(kind.value_type)


def _opened(image: Any, where: str, number: int, size: int | None) -> NDArray[np.float32]:
    """An image of a record: its bytes, else the file that it names."""
    place = f"{where}: image {number}"
    if image is None or (image["bytes"] is None and not image["path"]):
        raise DataError(f"{place} is missing; leave its row out")
    source = image["bytes"]
    if source is None:
        found = [Path(image["path"]), Path(where).parent / image["path"]]
        source = next((path for path in found if path.is_file()), None)
        if source is None:
            raise DataError(
                f"{place} is the file {image['path']!r}, which is not here; write the images into the table"
            )
    return open_image(source, place, size)


def _as_lists(pixels: NDArray[np.float32]) -> pa.Array:
    """Images (n, h, w) or (n, h, w, 3) as lists of lists."""
    values: Any = pa.array(pixels.reshape(-1))
    for width in reversed(pixels.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, width)
    return values
