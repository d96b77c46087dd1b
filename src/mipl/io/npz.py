"""NumPy's .npz: the arrays of a data set as they are, without pickle; the zip file has a checksum of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.candidates import label_names
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import border

__all__ = ["read", "write"]

_REQUIRED = ("instances", "offsets", "candidates")
#: name, kinds of numbers or text, dimensions
_KINDS = (
    ("instances", "fiub", 2),
    ("offsets", "iu", 1),
    ("instance_shape", "iu", 1),
    ("classes", "iuU", 1),
    ("bag_ids", "iuU", 1),
    ("name", "U", 0),
    ("description", "U", 0),
    ("labels", "iu", 1),
    ("instance_labels", "iu", 1),
    ("groups", "iu", 1),
    ("candidate_weights", "fiu", 2),
    ("background", "iuU", 0),
    ("feature_names", "U", 1),
)


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`."""
    arrays: dict[str, Any] = {
        "instances": dataset.bags.instances,
        "offsets": dataset.bags.offsets,
        "instance_shape": np.array(dataset.bags.instance_shape),
        "candidates": dataset.candidates,
        "classes": dataset.classes,
        "bag_ids": dataset.bag_ids,
        "name": np.array(dataset.name),
        "description": np.array(dataset.description),
    }
    if dataset.labels is not None:
        arrays["labels"] = dataset.labels
    if dataset.instance_labels is not None:
        arrays["instance_labels"] = dataset.instance_labels
    if dataset.groups is not None:
        arrays["groups"] = dataset.groups
    if dataset.candidate_weights is not None:
        arrays["candidate_weights"] = dataset.candidate_weights
    if dataset.background is not None:
        arrays["background"] = np.array(dataset.background)
    if dataset.bags.feature_names is not None:
        arrays["feature_names"] = np.array(dataset.bags.feature_names)
        if tuple(arrays["feature_names"].tolist()) != dataset.bags.feature_names:  # NumPy drops zeros at the end
            raise DataError("a feature name ends in a zero character, which .npz cannot hold; rename it")
    with path.open("wb") as file:  # given a path, NumPy would append .npz to it
        np.savez(file, allow_pickle=False, **arrays)


def read(path: Path) -> MIPLDataset:
    """Read a data set."""
    with border(str(path), "an .npz file of plain arrays"), np.load(path, allow_pickle=False) as file:
        arrays = {name: np.asarray(file[name]) for name in file.files}
    for name in _REQUIRED:
        if name not in arrays:
            raise DataError(f"{path} has no array {name!r}; it has {sorted(arrays)}")
    try:
        return _dataset(arrays, path.stem)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _dataset(arrays: dict[str, Any], stem: str) -> MIPLDataset:
    q = _of_kind(arrays, "candidates", "biuf", 2).shape[1]
    for name, kinds, ndim in _KINDS:
        if name in arrays:
            _of_kind(arrays, name, kinds, ndim)
    classes = arrays.get("classes", np.arange(q))
    labels = arrays.get("labels")
    if labels is not None and labels.size and not -1 <= int(labels.min()) <= int(labels.max()) < len(classes):
        raise DataError(f"the array 'labels' has a class index outside -1..{len(classes) - 1}")
    return MIPLDataset(
        bags=Bags(arrays["instances"], arrays["offsets"], arrays.get("instance_shape"), _names(arrays)),
        candidates=arrays["candidates"],
        labels=label_names(labels, classes),
        classes=arrays.get("classes"),
        instance_labels=arrays.get("instance_labels"),
        bag_ids=arrays.get("bag_ids"),
        name=str(arrays.get("name", stem)),
        description=str(arrays.get("description", "")),
        groups=arrays.get("groups"),
        candidate_weights=arrays.get("candidate_weights"),
        background=arrays["background"].item() if "background" in arrays else None,
    )


def _of_kind(arrays: dict[str, Any], name: str, kinds: str, ndim: int) -> NDArray[Any]:
    array: NDArray[Any] = arrays[name]
    if array.dtype.kind not in kinds or array.ndim != ndim:
        raise DataError(f"the array {name!r} is {array.dtype} {array.shape}; that is not what mipl writes")
    return array


def _names(arrays: dict[str, Any]) -> list[str] | None:
    return arrays["feature_names"].tolist() if "feature_names" in arrays else None
