"""Candidate sets: what a user may pass, and the (m, q) mask that every method sees."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError

__all__ = ["augment_candidates", "bag_name", "label_names", "parse_candidates", "parse_labels", "uniform_weights"]


def bag_name(i: int, bag_ids: Sequence[Any] | NDArray[Any] | None = None) -> str:
    """What an error calls the bag at position i: by its id where there are ids.

    >>> bag_name(1), bag_name(1, ["img-7", "img-9"])
    ('bag 1', "bag 'img-9'")
    """
    if bag_ids is None:
        return f"bag {i}"
    name = bag_ids[i]
    return f"bag {(name.item() if isinstance(name, np.generic) else name)!r}"


def parse_candidates(
    candidates: Any,
    classes: Iterable[Any] | None = None,
    n_bags: int | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Turn candidate sets into a mask (m, q) and the class names (q,).

    Parameters
    ----------
    candidates : one of
        - a bool or 0/1 array (m, q): class c is a candidate of bag i;
        - a sequence of m lists, sets, tuples or arrays of labels (integers or strings);
        - a pandas Series whose entries are such collections, or strings ``"a|b"``;
        - a 1-D array of m labels: one candidate each, plain supervised learning.
    classes : sequence of q labels, default=None
        Names and order of the classes. None stands for ``0..q-1`` for a mask, else for the sorted labels that occur.
    n_bags : int, default=None
        The number of bags that there must be sets for; None for any number.
    bag_ids : sequence of m ids, default=None
        What errors call the bags; None counts them from 0.

    Returns
    -------
    mask : (m, q) bool
    classes : (q,) int or str

    Raises
    ------
    DataError
        If there is not exactly one set per bag, a set is empty, or a label is not among the classes.

    Examples
    --------
    >>> mask, classes = parse_candidates([{"wren", "owl"}, {"owl"}])
    >>> classes.tolist(), mask.tolist()
    (['owl', 'wren'], [[True, True], [True, False]])
    """
    array = _try_array(candidates)
    is_mask = array is not None and array.ndim == 2 and array.dtype.kind in "biuf"
    entries: Any = array if is_mask else list(_entries(candidates))
    _check_count(len(entries), "candidate sets", n_bags, bag_ids)
    mask, names = _parse_mask(entries, classes, bag_ids) if is_mask else _parse_sets(entries, classes, bag_ids)
    if len(names) < 2:
        raise DataError(f"only one class ({names.tolist()}); there is nothing to tell apart, pass all class names")
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        name = bag_name(empty[0], bag_ids)
        raise DataError(f"{name} has no candidate label; give it at least one, or all classes if unknown")
    return mask, names


def _check_count(given: int, what: str, n_bags: int | None, bag_ids: Any) -> None:
    expected = len(bag_ids) if n_bags is None and bag_ids is not None else n_bags
    if expected is not None and given != expected:
        raise DataError(f"{given} {what} for {expected} bags; there must be one per bag")


def _parse_sets(entries: list[Any], classes: Any, bag_ids: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    sets = [_as_set(bag_name(i, bag_ids), entry) for i, entry in enumerate(entries)]
    if not sets:
        raise DataError("no candidate sets: the data set is empty")
    names = _as_classes(classes) if classes is not None else _sorted_labels(label for s in sets for label in s)
    index = {label: c for c, label in enumerate(names.tolist())}
    mask = np.zeros((len(sets), len(names)), dtype=bool)
    for i, labels in enumerate(sets):
        for label in labels:
            if label not in index:
                name = bag_name(i, bag_ids)
                raise DataError(f"{name} has the candidate {label!r}, which is not among the classes {names.tolist()}")
            mask[i, index[label]] = True
    return mask, names


def _parse_mask(array: NDArray[Any], classes: Any, bag_ids: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    bad = np.argwhere((array != 0) & (array != 1))
    if len(bad):
        i, c = bad[0]
        name = bag_name(i, bag_ids)
        raise DataError(f"{name}, class {c}: a candidate mask holds 0 and 1 only, not {array[i, c]}")
    names = np.arange(array.shape[1]) if classes is None else _as_classes(classes)
    if len(names) != array.shape[1]:
        raise DataError(f"{len(names)} class names for a candidate mask with {array.shape[1]} columns")
    return array.astype(bool), names


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


def _as_set(bag: str, entry: Any) -> list[Any]:
    if isinstance(entry, str):
        labels: list[Any] = [part.strip() for part in entry.split("|")] if entry else []
        if any(part == "" for part in labels):
            raise DataError(f'{bag}: the candidate list {entry!r} has an empty label; write "a|b"')
        return labels
    if isinstance(entry, int | np.integer):
        return [_as_label(f"{bag}: the label", entry)]
    if isinstance(entry, Iterable):
        return [_as_label(f"{bag}: the label", label) for label in entry]
    raise DataError(f"{bag}: cannot read a candidate set from {entry!r}; pass a list or set of labels")


def _as_label(what: str, label: Any) -> int | str:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, bool | np.bool_) or not isinstance(label, int | np.integer):
        raise DataError(f"{what} {label!r} is neither an integer nor a string")
    return int(label)


def _sorted_labels(labels: Iterable[Any]) -> NDArray[Any]:
    unique = set(labels)
    if len({type(label) for label in unique}) > 1:
        raise DataError("labels mix integers and strings; use one kind throughout")
    return np.array(sorted(unique)) if unique else np.array([], dtype=np.int64)


def _as_classes(classes: Any) -> NDArray[Any]:
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise DataError(f"classes must be a sequence of labels, got {classes!r}")
    names = [_as_label("the class name", c) for c in classes]
    if len({type(c) for c in names}) > 1:
        raise DataError("class names mix integers and strings; use one kind throughout")
    if len(set(names)) != len(names):
        twice = next(c for c in names if names.count(c) > 1)
        raise DataError(f"the class name {twice!r} occurs twice")
    return np.array(names)


def parse_labels(
    labels: Any,
    classes: NDArray[Any],
    n_bags: int | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """Turn bag labels (m,) into class indices.

    Parameters
    ----------
    labels : (m,) labels
        Entries of `classes`; where these are names, integers are taken as class indices. -1, None and NaN stand for
        an unknown label and give -1.
    classes : (q,) array of int or str
        The classes in their order.
    n_bags : int, default=None
        The number of bags that there must be labels for; None for any number.
    bag_ids : sequence of m ids, default=None
        What errors call the bags; None counts them from 0.

    Examples
    --------
    >>> parse_labels(["owl", None], np.array(["owl", "wren"]))
    array([ 0, -1])
    """
    if hasattr(labels, "to_numpy"):
        labels = labels.to_numpy()
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable) or getattr(labels, "ndim", 1) == 0:
        raise DataError(f"cannot read labels from {labels!r}; pass one label per bag")
    values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    _check_count(len(values), "labels", n_bags, bag_ids)
    names = classes.tolist()
    index: dict[Any, int] = {label: c for c, label in enumerate(names)}
    by_position = bool(names) and isinstance(names[0], str)
    out = np.empty(len(values), dtype=np.int64)
    for i, label in enumerate(values):
        whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
        if label is None or (isinstance(label, float) and label != label):
            out[i] = -1
        elif isinstance(label, Hashable) and label in index and not isinstance(label, bool | np.bool_):
            out[i] = index[label]
        elif whole and label == -1:
            out[i] = -1
        elif by_position and whole and 0 <= label < len(names):
            out[i] = label
        else:
            name = bag_name(i, bag_ids)
            raise DataError(f"{name} has the label {label!r}, which is not among the classes {names}")
    return out


def label_names(index: NDArray[np.int64] | None, classes: NDArray[Any]) -> list[Any] | None:
    """Turn class indices (m,) back into labels, None where unknown: the inverse of `parse_labels`.

    Parameters
    ----------
    index : (m,) int, or None
        Class indices, -1 where unknown; None gives None.
    classes : (q,) array of int or str
        The classes in their order.

    Examples
    --------
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
