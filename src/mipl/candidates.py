"""Candidate sets: what a user may pass, and the (m, q) mask that every method sees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError

__all__ = ["augment_candidates", "label_names", "parse_candidates", "parse_labels", "uniform_weights"]


def parse_candidates(
    candidates: Any, classes: Iterable[Any] | None = None, n_bags: int | None = None
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Turn candidate sets into a mask (m, q) and the class names (q,).

    Parameters
    ----------
    candidates : one of
        - a bool or 0/1 array (m, q): class c is a candidate of bag i;
        - a sequence of m lists, sets, tuples or arrays of labels (integers or strings);
        - a pandas Series whose entries are such collections, or strings ``"a|b"``;
        - a 1-D array of m labels: one candidate each, plain supervised learning.
    classes : sequence of q labels, optional
        Names and order of the classes. Default: ``0..q-1`` for a mask, else the sorted labels that occur.
    n_bags : int, optional
        Checked against m.

    Examples
    --------
    >>> mask, classes = parse_candidates([{"wren", "owl"}, {"owl"}])
    >>> classes.tolist(), mask.tolist()
    (['owl', 'wren'], [[True, True], [True, False]])
    """
    mask, names = _parse(candidates, classes)
    if n_bags is not None and len(mask) != n_bags:
        raise DataError(f"{len(mask)} candidate sets for {n_bags} bags; there must be one a bag")
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        raise DataError(f"bag {empty[0]} has no candidate label; give it at least one, or all classes if unknown")
    return mask, names


def _parse(candidates: Any, classes: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    array = _try_array(candidates)
    if array is not None and array.ndim == 2 and array.dtype.kind in "biuf":
        return _parse_mask(array, classes)
    sets = [_as_set(i, entry) for i, entry in enumerate(_entries(candidates))]
    if not sets:
        raise DataError("no candidate sets: the data set is empty")
    names = _as_classes(classes) if classes is not None else _sorted_labels(label for s in sets for label in s)
    index = {label: c for c, label in enumerate(names.tolist())}
    mask = np.zeros((len(sets), len(names)), dtype=bool)
    for i, labels in enumerate(sets):
        for label in labels:
            if label not in index:
                raise DataError(f"bag {i} has the candidate {label!r}, which is not among the classes {names.tolist()}")
            mask[i, index[label]] = True
    _check_two_classes(names)
    return mask, names


def _parse_mask(array: NDArray[Any], classes: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    bad = np.argwhere((array != 0) & (array != 1))
    if len(bad):
        i, c = bad[0]
        raise DataError(f"bag {i}, class {c}: a candidate mask holds 0 and 1 only, not {array[i, c]}")
    names = np.arange(array.shape[1]) if classes is None else _as_classes(classes)
    if len(names) != array.shape[1]:
        raise DataError(f"{len(names)} class names for a candidate mask with {array.shape[1]} columns")
    _check_two_classes(names)
    return array.astype(bool), names


def _check_two_classes(names: NDArray[Any]) -> None:
    if len(names) < 2:
        raise DataError(f"only one class ({names.tolist()}); there is nothing to tell apart, pass all class names")


def _try_array(candidates: Any) -> NDArray[Any] | None:
    """Give the array behind `candidates` where there is a rectangular one; ragged collections give None."""
    if isinstance(candidates, np.ndarray):
        return candidates
    if hasattr(candidates, "to_numpy"):
        return np.asarray(candidates.to_numpy())
    if isinstance(candidates, list | tuple) and candidates:
        first = candidates[0]
        # A list of lists of bools is a mask; of integers it is lists of labels, even when all have one length.
        if (
            isinstance(first, list | tuple | np.ndarray)
            and len(first)
            and all(isinstance(v, bool | np.bool_) for v in first)
        ):
            try:
                return np.asarray(candidates)
            except ValueError as error:
                raise DataError("the rows of the candidate mask differ in length") from error
    return None


def _entries(candidates: Any) -> Iterable[Any]:
    if hasattr(candidates, "to_numpy"):
        candidates = candidates.to_numpy()
    if isinstance(candidates, np.ndarray) and candidates.ndim != 1:
        raise DataError(
            f"cannot read candidates from an array of shape {candidates.shape} and type {candidates.dtype}; "
            "pass an (m, q) bool mask or a list of label sets"
        )
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Iterable):
        raise DataError("cannot read candidates; pass an (m, q) bool mask or a list of label sets")
    return candidates.tolist() if isinstance(candidates, np.ndarray) else candidates


def _as_set(i: int, entry: Any) -> list[Any]:
    if isinstance(entry, str):
        labels: list[Any] = [part.strip() for part in entry.split("|")] if entry else []
        if any(part == "" for part in labels):
            raise DataError(f'bag {i}: the candidate list {entry!r} has an empty label; write "a|b"')
        return labels
    if isinstance(entry, int | np.integer):
        return [_as_label(i, entry)]
    if isinstance(entry, Iterable):
        return [_as_label(i, label) for label in entry]
    raise DataError(f"bag {i}: cannot read a candidate set from {entry!r}; pass a list or set of labels")


def _as_label(i: int, label: Any) -> int | str:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, bool | np.bool_) or not isinstance(label, int | np.integer):
        raise DataError(f"bag {i}: the label {label!r} is neither an integer nor a string")
    return int(label)


def _sorted_labels(labels: Iterable[Any]) -> NDArray[Any]:
    unique = set(labels)
    if len({type(label) for label in unique}) > 1:
        raise DataError("labels mix integers and strings; use one kind throughout")
    return np.array(sorted(unique)) if unique else np.array([], dtype=np.int64)


def _as_classes(classes: Iterable[Any]) -> NDArray[Any]:
    names = [_as_label(0, c) for c in classes]
    if len({type(c) for c in names}) > 1:
        raise DataError("class names mix integers and strings; use one kind throughout")
    if len(set(names)) != len(names):
        twice = next(c for c in names if names.count(c) > 1)
        raise DataError(f"the class name {twice!r} occurs twice")
    return np.array(names)


def parse_labels(labels: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Turn bag labels (m,) into class indices.

    Labels are entries of `classes`; where these are names, integers are taken as class indices. -1 and ``None``
    stand for an unknown label and give -1.

    Examples
    --------
    >>> parse_labels(["owl", None], np.array(["owl", "wren"]))
    array([ 0, -1])
    """
    if hasattr(labels, "to_numpy"):
        labels = labels.to_numpy()
    values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    names = classes.tolist()
    index: dict[Any, int] = {label: c for c, label in enumerate(names)}
    by_position = bool(names) and isinstance(names[0], str)
    out = np.empty(len(values), dtype=np.int64)
    for i, label in enumerate(values):
        if label is None or (isinstance(label, float) and label != label):
            out[i] = -1
        elif label in index and not isinstance(label, bool):
            out[i] = index[label]
        elif isinstance(label, int) and not isinstance(label, bool) and label == -1:
            out[i] = -1
        elif by_position and isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(names):
            out[i] = label
        else:
            raise DataError(f"bag {i} has the label {label!r}, which is not among the classes {names}")
    return out


def label_names(index: NDArray[np.int64] | None, classes: NDArray[Any]) -> list[Any] | None:
    """Turn class indices (m,) back into labels, None where unknown: the inverse of `parse_labels`.

    >>> label_names(np.array([0, -1]), np.array(["owl", "wren"]))
    ['owl', None]
    """
    if index is None:
        return None
    names = classes.tolist()
    return [names[c] if c >= 0 else None for c in index.tolist()]


def augment_candidates(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Append the negative class, a candidate of everyone: (m, q) to (m, q + 1) (section 3.1 of the MIPLGP paper)."""
    return np.concatenate([mask, np.ones((len(mask), 1), dtype=bool)], axis=1)


def uniform_weights(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Spread one unit of weight evenly over each row's candidates (m, q)."""
    return mask / mask.sum(axis=1, keepdims=True)
