"""What a user may pass as instances, offsets and feature names, brought to the arrays that `Bags` holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.arrays import as_array
from mipl.candidates import bag_name
from mipl.errors import DataError
from mipl.visible_text import is_text

__all__ = ["as_bag", "as_feature_names", "as_instance_shape", "as_instances", "as_offsets", "check_finite"]


def as_instances(instances: ArrayLike) -> NDArray[np.float32]:
    """Read instances (n, d) as a C-ordered float32 array, without a copy where they are one already."""
    array = as_array(instances, "the array of instances")
    if array.dtype == object:
        raise DataError("the instances hold Python objects, not numbers; convert them to a float array first")
    if array.ndim != 2:
        raise DataError(f"instances must form a 2-D array (n, d), got shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise DataError(f"the instances are of type {array.dtype}, not real numbers")
    if array.shape[0] == 0:
        raise DataError("no instances: the data set is empty")
    if array.shape[1] == 0:
        raise DataError("the instances have no features (d = 0)")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def as_bag(array: NDArray[Any], bag: str) -> NDArray[Any]:
    """Check one bag of a list: instances of any shape, (n_i, d) or (n_i, h, w); `bag` is what an error calls it."""
    if array.dtype == object:
        raise DataError(f"{bag} holds Python objects, not numbers; convert it to a float array first")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{bag} is of type {array.dtype}, not real numbers")
    if array.ndim < 2:
        raise DataError(f"{bag} has shape {array.shape}; a bag is a 2-D array (instances, features)")
    if len(array) == 0:
        raise DataError(f"{bag} is empty; drop it, a bag has at least one instance")
    if array[0].size == 0:
        raise DataError(f"{bag} has no features (shape {array.shape})")
    return array


def as_offsets(offsets: ArrayLike, n: int) -> NDArray[np.int64]:
    """Read the edges (m + 1,) of m bags over n instances."""
    edges = np.asarray(offsets)
    if edges.ndim != 1 or len(edges) < 2 or not np.issubdtype(edges.dtype, np.integer):
        raise DataError("offsets must be m + 1 integers, one edge more than bags")
    edges = edges.astype(np.int64)
    if edges[0] != 0 or edges[-1] != n:
        raise DataError(f"offsets must run from 0 to the number of instances {n}, not {edges[0]} to {edges[-1]}")
    bad = np.flatnonzero(np.diff(edges) <= 0)
    if len(bad):
        raise DataError(f"bag {bad[0]} is empty; drop it, a bag has at least one instance")
    return edges


def as_instance_shape(shape: Sequence[int] | None, d: int) -> tuple[int, ...]:
    """Read the shape of one instance before it was flattened to d features; None stands for ``(d,)``."""
    full = (d,) if shape is None else tuple(int(s) for s in shape)
    if int(np.prod(full)) != d or min(full, default=0) < 1:
        raise DataError(f"instance_shape {full} has {int(np.prod(full))} entries, the instances have {d} features")
    return full


def as_feature_names(names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    """Read the names of d features, which must all differ; None where they have none."""
    if names is None:
        return None
    given = [names] if isinstance(names, str) else list(names)
    for j, name in enumerate(given):
        if not isinstance(name, str):
            raise DataError(f"feature {j} has the name {name!r}; feature names are strings")
        if not is_text(name):
            raise DataError(f"feature {j} has the name {name!r} with half a character (a lone surrogate); rename it")
    if len(given) != d:
        raise DataError(f"{len(given)} feature names for {d} features; there must be one per feature")
    plain = tuple(str(name) for name in given)  # NumPy's strings become Python's
    if len(set(plain)) < d:
        twice = next(name for name in plain if plain.count(name) > 1)
        raise DataError(f"the feature name {twice!r} occurs {plain.count(twice)} times; feature names must differ")
    return plain


def check_finite(
    instances: NDArray[np.float32],
    offsets: NDArray[np.int64],
    feature_names: Sequence[str] | None = None,
    bag_ids: Sequence[Any] | NDArray[Any] | None = None,
) -> None:
    """Refuse NaN and infinity; the error names the bag, the instance and the feature."""
    # A float64 sum of finite float32 numbers cannot overflow, so one pass without a temporary decides.
    if np.isfinite(np.sum(instances, dtype=np.float64)):
        return
    row, column = np.argwhere(~np.isfinite(instances))[0]
    bag = int(np.searchsorted(offsets, row, side="right")) - 1
    feature = column if feature_names is None else repr(feature_names[column])
    raise DataError(
        f"{bag_name(bag, bag_ids)}, instance {row - offsets[bag]}, feature {feature} is {instances[row, column]}; "
        "replace missing or infinite values before building bags (values beyond 3.4e38 overflow float32)"
    )
