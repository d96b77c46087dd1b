"""The MATLAB layout in which MIPL data sets are published.

``data`` is a cell matrix with one row per bag: instances (n_i, d), candidate labels, true label; labels count from 1.
Some files have a fourth column; where it holds one integer per instance it is read as instance labels (q + 1 for
negative, 0 for unknown), otherwise it is left alone. Splits are files of their own with ``trainIndex`` and
``testIndex``.
"""

from __future__ import annotations

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
from mipl.io.metadata import read_metadata
from mipl.io.published import provenance

__all__ = ["read", "read_split", "write"]


def write(dataset: MIPLDataset, path: Path) -> None:
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


def read(path: Path) -> MIPLDataset:
    """Read a data set from the published cell layout.

    The description of a file that mipl did not write says whether it is one of the authors' (`mipl.io.published`).
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
        return _dataset(bags, mask, labels, extra, cells, path)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _dataset(
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
