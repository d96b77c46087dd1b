"""Folders of images: one bag per image, cut into patches, or one folder per bag, each image an instance.

The candidates come from a side table (`mipl.io.side_table`), which names the file or folder, with or without its
suffix. Pixels are divided by 255. Images are grey where all of them are, else (height, width, 3).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.columns import Roles
from mipl.io.options import Columns
from mipl.io.pixels import coloured, open_image, patches, pixels_of
from mipl.io.raw import RawBags
from mipl.io.side_table import attach, read_side_table
from mipl.visible_text import as_text

__all__ = ["IMAGE_SUFFIXES", "SIDE_TABLES", "is_image_folder", "read"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
SIDE_TABLES = (".csv", ".tsv", ".xlsx")


def is_image_folder(folder: Path) -> bool:
    """Whether a folder holds images, or folders of images."""
    return bool(_images(folder)) or any(_images(each) for each in folder.iterdir() if each.is_dir())


def read(folder: Path, columns: Columns | None = None) -> RawBags:
    """Read bags from a folder of images: images in it are one bag each; else folders in it, their images the instances.

    Parameters
    ----------
    folder : Path
        The folder.
    columns : Columns, default=None
        `patch` and `size` are for the images, `table` is the table of candidates, of which the others tell the columns;
        without it, it is the only table in the folder, where there is one.
    """
    columns = columns or Columns()
    files = _images(folder)
    bags = {file.name: [file] for file in files}
    if not files:
        bags = {each.name: found for each in sorted(folder.iterdir()) if each.is_dir() and (found := _images(each))}
    if not bags:
        raise DataError(f"{folder} has no images ({', '.join(IMAGE_SUFFIXES)}) and no folders of images")
    opened = {name: [open_image(file, str(file), columns.size) for file in found] for name, found in bags.items()}
    colour = any(pixels.ndim == 3 for found in opened.values() for pixels in found)
    parts, ids = [], []
    for name, images in opened.items():
        pictures = [coloured(pixels) if colour else pixels for pixels in images]
        if files:
            cut, names = patches(str(folder / name), pictures[0], columns.patch)
        else:
            cut, names = _stacked(pictures, bags[name]), [file.name for file in bags[name]]
        parts.append(cut)
        ids += names
    first = next(iter(opened))
    for name, part in zip(opened, parts, strict=True):
        if part.shape[1:] != parts[0].shape[1:]:
            raise DataError(
                f"{folder}: {name} has images of {pixels_of(part.shape[1:])} pixels, {first} of "
                f"{pixels_of(parts[0].shape[1:])}; pass size=N (--size N) to resize all of them"
            )
    flat = np.concatenate([part.reshape(len(part), -1) for part in parts])
    raw = RawBags(
        where=str(folder),
        name=folder.resolve().name,
        values=flat,
        offsets=np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
        bag_ids=np.array([as_text(name) for name in bags]),
        candidates=None,
        instance_ids=np.array([as_text(name) for name in ids]),
        instance_shape=parts[0].shape[1:],
        roles=Roles(),
        remarks=[
            f"{folder}: {len(bags)} bags, "
            + (f"one per image, cut into patches of {pixels_of(parts[0].shape[1:])}" if files else "one per folder"),
        ],
    )
    table = _only_table(folder) if columns.table is None else Path(columns.table)
    if table is not None:
        attach(raw, read_side_table(table, columns, raw.bag_ids.tolist()))
    return raw


def _images(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.suffix.lower() in IMAGE_SUFFIXES and f.is_file())


def _stacked(pictures: list[NDArray[np.float32]], files: list[Path]) -> NDArray[np.float32]:
    for pixels, file in zip(pictures, files, strict=True):
        if pixels.shape != pictures[0].shape:
            raise DataError(
                f"{file} has {pixels_of(pixels.shape)} pixels, {files[0].name} {pixels_of(pictures[0].shape)}; "
                "pass size=N (--size N) to resize all of them"
            )
    return np.stack(pictures)


def _only_table(folder: Path) -> Path | None:
    """The table in a folder of images, None where there is none."""
    tables = sorted(f for f in folder.iterdir() if f.suffix.lower() in SIDE_TABLES)
    if len(tables) > 1:
        raise DataError(f"{folder} has {len(tables)} tables; say which one has the candidates with table=FILE")
    return tables[0] if tables else None
