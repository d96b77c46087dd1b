"""Files of arrays: NumPy's .npz, and the MATLAB layout in which MIPL data sets are published.

An .npz file holds the arrays of a data set as they are, without pickle; the zip file has a checksum of each.

In a .mat file, ``data`` is a cell matrix with one row per bag: instances (n_i, d), candidate labels, true label; labels
count from 1. Some files have a fourth column; where it holds one integer per instance it is read as instance labels
(q + 1 for negative, 0 for unknown), otherwise it is left alone. Splits are files of their own with ``trainIndex`` and
``testIndex``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat, savemat

from mipl.bags import Bags
from mipl.candidates import label_names
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.table import read_metadata

__all__ = ["git_blob", "provenance", "read_mat", "read_npz", "read_split", "write_mat", "write_npz"]

_REQUIRED = ("instances", "offsets", "candidates")


def write_npz(dataset: MIPLDataset, path: Path) -> None:
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


def read_npz(path: Path) -> MIPLDataset:
    """Read a data set."""
    with border(str(path), "an .npz file of a data set"), np.load(path, allow_pickle=False) as file:
        arrays = {name: np.asarray(file[name]) for name in file.files}
        for name in _REQUIRED:
            if name not in arrays:
                raise DataError(f"{path} has no array {name!r}; it has {sorted(arrays)}")
        try:
            return _dataset(arrays, path.stem)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error


def _dataset(arrays: dict[str, Any], stem: str) -> MIPLDataset:
    classes = arrays.get("classes", np.arange(arrays["candidates"].shape[1]))
    labels = arrays.get("labels")
    if labels is not None and labels.size and not -1 <= int(labels.min()) <= int(labels.max()) < len(classes):
        raise DataError(f"the array 'labels' has a class index outside -1..{len(classes) - 1}")
    names = arrays["feature_names"].tolist() if "feature_names" in arrays else None
    return MIPLDataset(
        bags=Bags(arrays["instances"], arrays["offsets"], arrays.get("instance_shape"), names),
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


def write_mat(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` as a cell matrix; names, ids and the instance shape go to a JSON text ``mipl`` beside it."""
    for what, value in (
        ("weights of candidates", dataset.candidate_weights),
        ("a background class", dataset.background),
    ):
        if value is not None:
            raise DataError(f"the published .mat layout cannot hold {what}; save as .parquet, .npz or .csv")
    width = 3 if dataset.instance_labels is None else 4
    cells = np.empty((len(dataset), width), dtype=object)
    labels = np.full(len(dataset), -1) if dataset.labels is None else dataset.labels
    for i, (instances, candidates) in enumerate(zip(dataset.bags, dataset.candidates, strict=True)):
        cells[i, 0] = instances
        cells[i, 1] = np.flatnonzero(candidates)[None] + 1
        cells[i, 2] = np.array([[labels[i] + 1]])
    if dataset.instance_labels is not None:
        for i, part in enumerate(np.split(dataset.instance_labels + 1, dataset.bags.offsets[1:-1])):
            cells[i, 3] = part[:, None]
    extra = {
        "classes": dataset.classes.tolist(),
        "bag_ids": dataset.bag_ids.tolist(),
        "instance_shape": list(dataset.bags.instance_shape),
        "feature_names": dataset.bags.feature_names,
        "name": dataset.name,
        "description": dataset.description,
        "groups": None if dataset.groups is None else dataset.groups.tolist(),
    }
    savemat(path, {"data": cells, "mipl": json.dumps(extra)}, appendmat=False, do_compression=True)


def read_mat(path: Path) -> MIPLDataset:
    """Read a data set from the published cell layout.

    The description of a file that mipl did not write says whether it is one of the authors' (`mipl.io.arrays`).
    """
    content = _load(path)
    if "data" not in content:
        names = [n for n in content if not n.startswith("__")]
        hint = "; it is a split, use it with a data set" if "trainIndex" in content else ""
        raise DataError(f"{path} has no variable 'data'; it has {names}{hint}")
    cells = content["data"]
    if not isinstance(cells, np.ndarray) or cells.dtype != object:
        raise DataError(f"{path}: 'data' is no cell matrix; it must have one row per bag and 3 or 4 columns")
    if cells.ndim != 2 or cells.shape[1] not in (3, 4) or len(cells) == 0:
        raise DataError(
            f"{path}: 'data' is a cell array {cells.shape}; it must be a cell matrix with one row per bag and "
            "3 columns (instances, candidate labels, true label) or 4"
        )
    bags = [_matrix(path, i, cell) for i, cell in enumerate(cells[:, 0])]
    candidates = [_whole_numbers(path, i, cell, "candidate labels") for i, cell in enumerate(cells[:, 1])]
    labels = [_whole_numbers(path, i, cell, "true label") for i, cell in enumerate(cells[:, 2])]
    for i, (row, label) in enumerate(zip(candidates, labels, strict=True)):
        if len(row) == 0 or row.min() < 1 or row.max() > 1_000_000:
            raise DataError(f"{path}: bag {i} has the candidate labels {row.tolist()}; they must be 1, 2, ...")
        if len(label) > 1 or (label < 0).any():
            raise DataError(f"{path}: bag {i} has the true label {label.tolist()}; it must be one of 1, 2, ...")
    extra = _extra(path, content)
    named = extra.get("classes")
    q = len(named) if named is not None else int(max(row.max() for row in candidates + labels if len(row)))
    mask = np.zeros((len(bags), q), dtype=bool)
    for i, (row, label) in enumerate(zip(candidates, labels, strict=True)):
        if len(label) and label[0] > q:
            raise DataError(f"{path}: bag {i} has the true label {label[0]}, but there are {q} classes")
        if row.max() > q:
            raise DataError(f"{path}: bag {i} has the candidate label {row.max()}, but there are {q} classes")
        mask[i, row - 1] = True
    try:
        return _mat_dataset(bags, mask, labels, extra, cells, path)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _mat_dataset(
    bags: list[NDArray[Any]],
    mask: NDArray[np.bool_],
    labels: list[NDArray[np.int64]],
    extra: dict[str, Any],
    cells: NDArray[Any],
    path: Path,
) -> MIPLDataset:
    q = mask.shape[1]
    built = Bags.from_list(bags, extra.get("instance_shape"), extra.get("feature_names"))
    truth = np.array([label[0] - 1 if len(label) else -1 for label in labels])
    return MIPLDataset(
        bags=built,
        candidates=mask,
        labels=label_names(truth, np.array(extra.get("classes") or range(q))),
        classes=extra.get("classes"),
        instance_labels=_instance_labels(cells, built, q),
        bag_ids=extra.get("bag_ids"),
        name=extra.get("name", path.stem) or "",
        description=extra["description"] if "description" in extra else provenance(path),
        groups=extra.get("groups"),
    )


def read_split(path: str | Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read an ``index*.mat`` file: the training and test bags, counted from 0."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"no such file: {file}")
    content = _load(file)
    parts = []
    for name in ("trainIndex", "testIndex"):
        if name not in content:
            raise DataError(f"{file} has no variable {name!r}; it is not a split")
        index = _whole_numbers(file, 0, content[name], name) - 1
        if len(index) == 0 or index.min() < 0:
            raise DataError(f"{file}: {name} must hold bag numbers from 1")
        parts.append(index)
    both = np.concatenate(parts)
    if len(np.unique(both)) != len(both):
        raise DataError(f"{file}: a bag occurs twice in the training and test parts")
    return parts[0], parts[1]


def _load(path: Path) -> dict[str, Any]:
    with border(str(path), "a MATLAB file"):
        try:
            content: dict[str, Any] = loadmat(path, appendmat=False)
        except NotImplementedError as error:
            raise DataError(f"{path} is a MATLAB 7.3 (HDF5) file; save it again in MATLAB with -v7") from error
    return content


def _extra(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    if "mipl" not in content:
        return {}
    text = content["mipl"]
    if text.dtype.kind != "U" or text.size != 1:
        raise DataError(f"{path}: the variable 'mipl' is not the text that mipl writes")
    return read_metadata(text.item(), str(path))


def _dense(cell: Any) -> NDArray[Any]:
    return np.asarray(cell.toarray() if hasattr(cell, "toarray") else cell)


def _matrix(path: Path, i: int, cell: Any) -> NDArray[Any]:
    array = _dense(cell)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "fiub":
        raise DataError(
            f"{path}: bag {i} has instances of type {array.dtype} and shape {array.shape}; expected (n_i, d)"
        )
    return array


def _whole_numbers(path: Path, i: int, cell: Any, what: str) -> NDArray[np.int64]:
    array = _dense(cell).reshape(-1)
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all() or (np.abs(array) > 2**53).any():
        raise DataError(f"{path}: bag {i}: the {what} are not whole numbers")
    whole = array.astype(np.int64)
    if (whole != array).any():
        raise DataError(f"{path}: bag {i}: the {what} {array.tolist()} are not whole numbers")
    return whole


def _instance_labels(cells: NDArray[Any], bags: Bags, q: int) -> NDArray[np.int64] | None:
    if cells.shape[1] < 4:
        return None
    columns = [np.asarray(cell).reshape(-1) for cell in cells[:, 3]]
    if any(c.dtype.kind not in "fiub" or len(c) != n for c, n in zip(columns, bags.sizes, strict=True)):
        return None
    labels = np.concatenate(columns)
    fits = np.isfinite(labels).all() and (labels == np.rint(labels)).all() and ((labels >= 0) & (labels <= q + 1)).all()
    return labels.astype(np.int64) - 1 if fits else None


#: How the git blob ids of the authors' three MNIST-MIPL files begin, by which their repository lists them.
AUTHORS_MNIST = ("97dad3c7", "999c450d", "c1b25b44")


def git_blob(path: Path) -> str:
    """The id (40 hex digits) under which git stores the content of a file: that of ``git hash-object``."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def provenance(path: Path) -> str:
    """One sentence: whether the file at `path` is one of the authors' MNIST-MIPL files."""
    blob = git_blob(path)
    if blob.startswith(AUTHORS_MNIST):
        return f"One of the MNIST-MIPL files that the authors of MIPLGP published (git blob {blob[:8]})."
    return f"Not one of the authors' MNIST-MIPL files (git blob {blob[:8]}; theirs are {', '.join(AUTHORS_MNIST)})."
