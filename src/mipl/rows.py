"""Tables with one row per instance: rows grouped by their bag, and the columns of pandas frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.bag_ids import as_bag_ids
from mipl.errors import DataError, UnavailableError

if TYPE_CHECKING:
    import pandas as pd

    from mipl.dataset import MIPLDataset

__all__ = ["check_columns", "dataset_frame", "frame_features", "group_rows", "instances_frame", "one_per_bag"]


def group_rows(bag_ids: ArrayLike, n_rows: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Sort rows by bag id, stably, bags in order of first appearance.

    Parameters
    ----------
    bag_ids : (n,) integers or strings
        The bag of each row.
    n_rows : int
        The number n of rows, for the check.

    Returns
    -------
    order : (n,) int, or None
        The rows, bag after bag; None when they are grouped already.
    offsets : (m + 1,) int
        Where each bag starts in that order.
    ids : (m,)
        The id of each bag.
    """
    ids = np.asarray(bag_ids)
    if ids.ndim != 1 or len(ids) != n_rows:
        raise DataError(f"expected one bag id per row ({n_rows}), got shape {ids.shape}")
    if n_rows == 0:
        raise DataError("no instances: the table has no rows")
    if ids.dtype == object:
        ids = _plain_ids(ids)
    if np.issubdtype(ids.dtype, np.floating) and np.isnan(ids).any():
        raise DataError(f"row {int(np.flatnonzero(np.isnan(ids))[0])} has no bag id")
    ids = as_bag_ids(ids)
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    if len(np.unique(ids[starts])) == len(starts):
        return None, np.append(starts, n_rows), ids[starts]
    unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(unique))
    bag = rank[inverse]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(bag))])
    return np.argsort(bag, kind="stable"), offsets, ids[np.sort(first)]


def check_columns(frame: Any, names: Sequence[Any]) -> None:
    """Refuse names that are not exactly one column of the frame."""
    counts = Counter(frame.columns)
    for name in names:
        if name not in counts:
            raise DataError(f"the frame has no column {name!r}; its columns are {list(counts)}")
        if counts[name] > 1:
            raise DataError(f"the frame has the column {name!r} {counts[name]} times; rename or drop one")


def frame_features(frame: Any) -> NDArray[np.float32]:
    """The numbers (n, d) of a frame of features; the error names the column and row that is none."""
    if not frame.shape[1]:
        raise DataError("the frame has no feature columns")
    if not frame.columns.is_unique:
        check_columns(frame, frame.columns)
    if not {kind.kind for kind in frame.dtypes} <= set("biuf"):
        for name in frame.columns:
            _check_numbers(name, frame[name])
    values: NDArray[np.float32] = np.ascontiguousarray(frame.to_numpy(dtype=np.float32, na_value=np.nan))
    bad = np.argwhere(~np.isfinite(values.T))
    if len(bad):
        column, row = bad[0]
        raise DataError(
            f"column {frame.columns[column]!r}, row {row} is missing or not finite; fill it or drop the row"
        )
    return values


def _check_numbers(name: Any, column: Any) -> None:
    """Refuse a column that holds something else than numbers; text is none, though NumPy reads '1_2' as 12."""
    try:
        text = next((cell for cell in column if isinstance(cell, str | bytes)), None)
        if text is not None:
            raise TypeError(f"{text!r} is text")
        column.to_numpy(dtype=np.float32, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} is not numeric ({error}); drop it or name the feature columns") from error


def instances_frame(
    bag_of_row: NDArray[Any], instances: NDArray[np.float32], names: Sequence[str] | None
) -> pd.DataFrame:
    """A pandas frame of instances (n, d) with the id (n,) of each one's bag in front; None: features are counted."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UnavailableError("a frame needs pandas: pip install pandas") from error
    columns = [f"f{j}" for j in range(instances.shape[1])] if names is None else list(names)
    frame = pd.DataFrame(instances, columns=columns)
    if "bag_id" in frame.columns:
        raise DataError("a feature is called 'bag_id', as the column of bags would be; rename the feature")
    frame.insert(0, "bag_id", bag_of_row)
    return frame


def dataset_frame(dataset: MIPLDataset) -> pd.DataFrame:
    """A pandas frame with one row per instance.

    Its columns are ``bag_id``, ``candidates`` (lists of names, or names with weights), ``label`` where one is known,
    and the features.
    """
    frame = dataset.bags.to_frame(dataset.bag_ids)
    entries: list[Any] = list(dataset.candidate_sets())
    if dataset.candidate_weights is not None:
        rows = zip(entries, dataset.candidates, dataset.candidate_weights, strict=True)
        entries = [dict(zip(names, weights[row].tolist(), strict=True)) for names, row, weights in rows]
    labels = dataset.label_names()
    columns = {"candidates": entries, **({} if labels is None else {"label": labels})}
    for place, (name, values) in enumerate(columns.items(), start=1):
        if name in frame.columns:
            raise DataError(f"a feature is called {name!r}, as the column of {name} would be; rename the feature")
        frame.insert(place, name, [values[i] for i in dataset.bags.bag_of_instance])
    return frame


def one_per_bag(column: Any, rows: NDArray[np.int64], offsets: NDArray[np.int64], ids: NDArray[Any]) -> NDArray[Any]:
    """The value of a column in each bag's first row (m,); later rows repeat it or are missing.

    Parameters
    ----------
    column : pandas.Series
        One value per instance.
    rows : (n,) int
        The column's rows, bag after bag.
    offsets : (m + 1,) int
        Where each bag starts in `rows`.
    ids : (m,)
        What an error calls the bags.
    """
    values = column.to_numpy(dtype=object)[rows]
    missing = column.isna().to_numpy()[rows]
    first: NDArray[Any] = values[offsets[:-1]]
    expected = np.repeat(first, np.diff(offsets))
    differ = np.flatnonzero(~missing & np.fromiter(map(_differ, values, expected), bool))
    if len(differ):
        k = int(differ[0])
        bag = int(np.searchsorted(offsets, k, side="right")) - 1
        raise DataError(
            f"bag {ids[bag].item()!r}, row {rows[k]}: {column.name} is {values[k]!r}, but {expected[k]!r} in the bag's "
            "first row; all rows of a bag must agree"
        )
    first[missing[offsets[:-1]]] = None
    return first


def _differ(a: Any, b: Any) -> bool:
    return a is not b and not (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


def _plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Integers or strings out of an object array, as pandas gives it."""
    missing = np.flatnonzero((ids == np.array(None)) | (ids != ids))
    if len(missing):
        raise DataError(f"row {missing[0]} has no bag id")
    return as_bag_ids(ids)
