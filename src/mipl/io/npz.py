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
        bags=Bags(arrays["instances"], arrays["offsets"], arrays.get("instance_shape"), _names(arrays)),
        candidates=arrays["candidates"],
        labels=label_names(arrays.get("labels"), arrays.get("classes", np.arange(q))),
        classes=arrays.get("classes"),
        instance_labels=arrays.get("instance_labels"),
        bag_ids=arrays.get("bag_ids"),
        name=str(arrays.get("name", path.stem)),
        description=str(arrays.get("description", "")),
        groups=arrays.get("groups"),
        candidate_weights=arrays.get("candidate_weights"),
        background=arrays["background"].item() if "background" in arrays else None,
    )


def _names(arrays: dict[str, Any]) -> list[str] | None:
    return arrays["feature_names"].tolist() if "feature_names" in arrays else None
