"""The 70,000 labelled 28 x 28 images of MNIST and of Fashion-MNIST, which share their file format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.datasets.sources.files import RemoteFile, cache_folder, check_arrays, download, local_file, read_npz
from mipl.errors import DataError

__all__ = ["ImageSource", "load_images"]

Images = tuple[NDArray[np.uint8], NDArray[np.uint8]]

#: The files of the original distribution, in the order in which they are put together.
_PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class ImageSource(NamedTuple):
    """Where one of the two image collections comes from, and what its content must be."""

    name: str
    npz_sha256: str  #: of $MIPL_DATA/<name>/<name>.npz, with X uint8 (70000, 784) and y uint8 (70000,)
    idx_sha256: tuple[str, str, str, str]  #: of the four unpacked files of the original distribution
    mirrors: Sequence[str]  #: folders with these four files as .gz
    openml: str  #: name on openml.org
    content_sha256: str  #: of X and y together


def load_images(source: ImageSource) -> Images:
    """Pixels uint8 (70000, 784) and labels uint8 (70000,), training part first.

    They come from ``$MIPL_DATA``, else from the mirrors of the original files, else from OpenML. All give the same
    arrays.
    """
    local = local_file(f"{source.name}/{source.name}.npz", source.npz_sha256)
    if local is not None:
        arrays = read_npz(local)
        return arrays["X"], arrays["y"]
    try:
        X, y = _from_mirrors(source)
    except DataError as offline:
        try:
            X, y = _from_openml(source)
        except Exception as error:  # every failure ends in the same advice
            raise DataError(f"{offline}\nOpenML failed as well: {error}") from error
    check_arrays(source.name, source.content_sha256, X, y)
    return X, y


def _from_mirrors(source: ImageSource) -> Images:
    files = [
        RemoteFile(f"{source.name}/{part}", sha256, [f"{mirror}/{part}.gz" for mirror in source.mirrors])
        for part, sha256 in zip(_PARTS, source.idx_sha256, strict=True)
    ]
    train_X, train_y, test_X, test_y = map(_read_idx, download(files))
    return np.concatenate([train_X, test_X]).reshape(-1, 784), np.concatenate([train_y, test_y])


def _from_openml(source: ImageSource) -> Images:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(source.openml, version=1, as_frame=False, data_home=cache_folder() / "openml")
    return np.asarray(bunch.data, dtype=np.float64).astype(np.uint8), np.asarray(bunch.target).astype(np.uint8)


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file of bytes: two zero bytes, type 8, the number of axes, their big-endian lengths, the values."""
    raw = path.read_bytes()
    shape = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape.astype(int))
