"""Candidate sets: what a user may pass, and the (m, q) mask and weights that methods see."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.arrays import as_pandas, is_table, unwrapped
from mipl.errors import DataError
from mipl.odd_candidates import find_odd_candidates
from mipl.votes import SET_WEIGHT, as_label, read_entry

__all__ = [
    "augment_candidates",
    "bag_name",
    "check_weights",
    "is_label_vector",
    "label_names",
    "parse_candidates",
    "parse_labels",
    "parse_votes",
    "uniform_weights",
]


def bag_name(i: int, bag_ids: Sequence[Any] | NDArray[Any] | None = None) -> str:
    """What an error calls the bag at position i: by its id where there are ids.

    >>> bag_name(1), bag_name(1, ["img-7", "img-9"])
    ('bag 1', "bag 'img-9'")
    """
    if bag_ids is None:
        return f"bag {i}"
    name = bag_ids[i]
    return f"bag {(name.item() if isinstance(name, np.generic) else name)!r}"


def parse_votes(
    candidates: Any,
    classes: Iterable[Any] | None = None,
    n_bags: int | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
    *,
    warn: bool = True,
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None, NDArray[Any]]:
    """Turn candidate sets, votes or weights into a mask (m, q), weights (m, q) or None, and the class names (q,).

    Parameters
    ----------
    candidates : one of
        - a bool or 0/1 array (m, q): class c is a candidate of bag i;
        - an array (m, q) of other numbers: the votes or weights of the classes, zero for no candidate;
        - a sequence of m entries: lists, sets, tuples or arrays of labels (integers or strings), mappings from labels
          to weights, strings ``"a|b"`` or ``"a:3|b:1"`` (see `mipl.votes.read_entry` for names with a ``:``), or None
          or NaN for a bag of which nothing is known, so that all classes are candidates;
        - a pandas Series of such entries;
        - a 1-D array of m labels: one candidate each, plain supervised learning.
    classes : sequence of q labels, default=None
        Names and order of the classes. None stands for ``0..q-1`` for a matrix, else for the sorted labels that occur.
    n_bags : int, default=None
        The number of bags that there must be sets for; None for any number.
    bag_ids : sequence of m ids, default=None
        What errors call the bags; None counts them from 0.
    warn : bool, default=True
        Whether to warn of what is probably meant otherwise, see `mipl.odd_candidates`.

    Returns
    -------
    mask : (m, q) bool
        The candidates: where weights are given, those with a positive one.
    weights : (m, q) float64, or None
        None where no bag has weights; else bags without weights have 0.5 for each candidate: equal odds, and no vote.
    classes : (q,) int or str

    Raises
    ------
    DataError
        If there is not exactly one entry per bag, a bag has no candidate, a label is not among the classes, or a
        weight is negative or not finite.

    Examples
    --------
    >>> mask, weights, classes = parse_votes([{"wren": 1, "owl": 3}, ["owl"], None])
    >>> classes.tolist(), weights.tolist()
    (['owl', 'wren'], [[3.0, 1.0], [0.5, 0.0], [0.5, 0.5]])
    """
    if is_table(candidates):
        candidates, classes = _by_column(as_pandas(candidates), classes)
    candidates = unwrapped(candidates)
    array = _try_array(candidates)
    is_matrix = array is not None and array.ndim == 2 and array.dtype.kind in "biuf"
    entries: Any = array if is_matrix else list(_entries(candidates))
    _check_count(len(entries), "candidate sets", n_bags, bag_ids)
    known = None if classes is None else _as_classes(classes)
    if is_matrix:
        mask, weights, names = _parse_matrix(entries, known, bag_ids)
    else:
        mask, weights, names = _parse_entries(entries, known, bag_ids, warn)
    if len(names) < 2:
        raise DataError(f"only one class ({names.tolist()}); there is nothing to tell apart, pass all class names")
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        name = bag_name(empty[0], bag_ids)
        raise DataError(f"{name} has no candidate label; give it at least one, or None where nothing is known")
    return mask, weights, names


def parse_candidates(
    candidates: Any,
    classes: Iterable[Any] | None = None,
    n_bags: int | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """The mask (m, q) and the class names (q,) of `parse_votes`, for uses where only the sets matter.

    Examples
    --------
    >>> mask, classes = parse_candidates([{"wren", "owl"}, {"owl"}])
    >>> classes.tolist(), mask.tolist()
    (['owl', 'wren'], [[True, True], [True, False]])
    """
    mask, _, names = parse_votes(candidates, classes, n_bags, bag_ids)
    return mask, names


def _check_count(given: int, what: str, n_bags: int | None, bag_ids: Any) -> None:
    expected = len(bag_ids) if n_bags is None and bag_ids is not None else n_bags
    if expected is not None and given != expected:
        raise DataError(f"{given} {what} for {expected} bags; there must be one per bag")


Parsed = tuple[NDArray[np.bool_], NDArray[np.float64] | None, NDArray[Any]]


def _parse_entries(entries: list[Any], classes: NDArray[Any] | None, bag_ids: Any, warn: bool) -> Parsed:
    if not entries:
        raise DataError("no candidate sets: the data set is empty")
    known = None if classes is None else set(classes.tolist())
    read = [read_entry(bag_name(i, bag_ids), unwrapped(entry), known) for i, entry in enumerate(entries)]
    for odd in find_odd_candidates(read, named=classes is not None) if warn else ():
        bags = bag_name(odd.bags[0], bag_ids) + (f" and {len(odd.bags) - 1} more" if len(odd.bags) > 1 else "")
        warnings.warn(f"probably not meant so: {bags}: {odd.message}; {odd.remedy}", UserWarning, stacklevel=4)
    if classes is None:
        classes = _sorted_labels(label for entry in read for label in entry or ())
        if not len(classes):
            raise DataError("no bag has a candidate label; pass the classes, or at least one candidate set")
    index = {label: c for c, label in enumerate(classes.tolist())}
    weights = np.zeros((len(read), len(classes)))
    for i, entry in enumerate(read):
        if entry is None:
            weights[i] = SET_WEIGHT
            continue
        for label in entry:
            if label not in index:
                raise DataError(
                    f"{bag_name(i, bag_ids)} has the candidate {label!r}, which is not among the classes "
                    f"{_listed(classes.tolist())}"
                )
            weights[i, index[label]] = entry[label] if isinstance(entry, dict) else SET_WEIGHT
    return weights > 0, weights if any(isinstance(entry, dict) for entry in read) else None, classes


def _parse_matrix(array: NDArray[Any], classes: NDArray[Any] | None, bag_ids: Any) -> Parsed:
    names = np.arange(array.shape[1]) if classes is None else classes
    if len(names) != array.shape[1]:
        raise DataError(f"{len(names)} class names for a candidate mask with {array.shape[1]} columns")
    if ((array == 0) | (array == 1)).all():
        return array.astype(bool), None, names
    weights = _as_weights(array, bag_ids)
    return weights > 0, weights, names


def check_weights(
    weights: ArrayLike, mask: NDArray[np.bool_], bag_ids: Sequence[Any] | NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """The weights (m, q) of candidates as float64: positive where the mask (m, q) is true, else zero.

    Raises
    ------
    DataError
        The weights have another shape, or one is not finite, is negative, or does not agree with the mask.
    """
    array = np.asarray(weights)
    if array.shape != mask.shape or array.dtype.kind not in "biuf":
        raise DataError(f"candidate_weights must be numbers of shape {mask.shape}, got {array.dtype} {array.shape}")
    array = _as_weights(array, bag_ids)
    differ = np.argwhere((array > 0) != mask)
    if len(differ):
        i, c = differ[0]
        name, what = bag_name(i, bag_ids), "a candidate" if mask[i, c] else "no candidate"
        raise DataError(f"{name}, class {c} has the weight {array[i, c]:g} and is {what}; make them agree")
    return array


def _as_weights(weights: NDArray[Any], bag_ids: Any) -> NDArray[np.float64]:
    array = weights.astype(np.float64)
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        i, c = bad[0]
        raise DataError(
            f"{bag_name(i, bag_ids)}, class {c}: the weight {weights[i, c]} is not a finite number from 0 up; "
            "0 says that the class is not a candidate"
        )
    return array


def _by_column(frame: Any, classes: Any) -> tuple[Any, Any]:
    """A frame of candidates (m, q) whose columns are called by the classes, in the order of these, and the classes."""
    columns = list(frame.columns)
    if not all(isinstance(name, str) for name in columns):
        return frame, classes
    if classes is None:
        return frame, columns
    names = [as_label("the class name", name) for name in classes]
    if not all(isinstance(name, str) for name in names):
        return frame, classes
    for name in columns:
        if name not in names:
            raise DataError(
                f"the frame of candidates has the column {name!r}, which is not among the classes {names}; pass "
                "frame.to_numpy() if its columns are the classes in this order"
            )
    values = unwrapped(frame)
    matrix = np.zeros((len(values), len(names)), dtype=values.dtype)
    matrix[:, [names.index(name) for name in columns]] = values
    return matrix, classes


def _try_array(candidates: Any) -> NDArray[Any] | None:
    """The array of `candidates` where there is a rectangular one; ragged collections give None."""
    if isinstance(candidates, np.ndarray):
        return candidates
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
    if isinstance(candidates, np.ndarray) and candidates.ndim != 1:
        raise DataError(
            f"cannot read candidates from an array of shape {candidates.shape} and type {candidates.dtype}; "
            "pass an (m, q) mask or matrix of weights, or a list of label sets"
        )
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Iterable):
        raise DataError("cannot read candidates; pass an (m, q) bool mask or a list of label sets")
    return candidates.tolist() if isinstance(candidates, np.ndarray) else candidates


def _sorted_labels(labels: Iterable[Any]) -> NDArray[Any]:
    unique = set(labels)
    if len({type(label) for label in unique}) > 1:
        raise DataError("labels mix integers and strings; use one kind throughout")
    return np.array(sorted(unique)) if unique else np.array([], dtype=np.int64)


def _as_classes(classes: Any) -> NDArray[Any]:
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise DataError(f"classes must be a sequence of labels, got {classes!r}")
    names = [as_label("the class name", c) for c in classes]
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
    labels = unwrapped(labels)
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
            told = f"{name} has the label {label!r}, which is not among the classes {_listed(names)}"
            raise DataError(f"{told}; {_advice(label, names)}")
    return out


def _listed(names: list[Any], most: int = 10) -> str:
    """The names as a list; of many the first ones."""
    return str(names) if len(names) <= most else f"{str(names[:most])[:-1]}, and {len(names) - most} more]"


def _advice(label: Any, names: list[Any]) -> str:
    """What to do about a label that is no class."""
    for name in names:
        before, part, after = str(name).partition(str(label))
        sep = (after.strip() or before.strip()[::-1])[:1]
        if part and sep and sep in ",;/|+&":
            return (
                f"if the class {name!r} stands for several, pass candidates_sep={sep!r} "
                f"(on the command line --candidates-sep {sep!r})"
            )
    return "correct the label, or add it to the candidates of a bag"


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
    weights: NDArray[np.float64] = mask / mask.sum(axis=1, keepdims=True)
    return weights


def is_label_vector(y: Any, classes: NDArray[Any]) -> bool:
    """Whether y holds one label per bag; strings such as "a|b" are candidate sets, unless a class is called so."""
    y = unwrapped(y)
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OU":
        return y.ndim == 1
    if isinstance(y, np.ndarray):
        y = y.tolist()
    if not isinstance(y, Sequence) or isinstance(y, str | bytes):
        raise DataError(f"cannot read labels from {type(y).__name__}; pass one label or candidate set per bag")
    names = set(classes.tolist())
    return len(y) > 0 and all(
        v is None or isinstance(v, int | np.integer | float) or (isinstance(v, str) and ("|" not in v or v in names))
        for v in y
    )
