"""NumPy's .npz: the arrays of a data set as they are, without pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mipl.bags import Bags
from mipl.candidates import label_names
from mipl.dataset import MIPLDataset
from mipl.errors import DataError

__all__ = ["read", "write"]

_REQUIRED = ("instances", "offsets", "candidates")


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
    np.savez(path, allow_pickle=False, **arrays)


def read(path: Path) -> MIPLDataset:
    """Read a data set."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, NotImplementedError) as error:
        raise DataError(f"{path} is damaged or not an .npz file of plain arrays ({error})") from error
    for name in _REQUIRED:
        if name not in arrays:
            raise DataError(f"{path} has no array {name!r}; it has {sorted(arrays)}")
    q = arrays["candidates"].shape[-1]
    return MIPLDataset(
        bags=Bags(arrays["instances"], arrays["offsets"], arrays.get("instance_shape")),
        candidates=arrays["candidates"],
        labels=label_names(arrays.get("labels"), arrays.get("classes", np.arange(q))),
        classes=arrays.get("classes"),
        instance_labels=arrays.get("instance_labels"),
        bag_ids=arrays.get("bag_ids"),
        name=str(arrays.get("name", path.stem)),
        description=str(arrays.get("description", "")),
        groups=arrays.get("groups"),
    )
