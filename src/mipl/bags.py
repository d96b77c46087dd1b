"""Bags: m variable-sized sets of instances in one flat array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.errors import DataError

__all__ = ["Bags", "as_bags"]


class Bags:
    """An immutable sequence of m bags over n instances with d features.

    All instances lie in one C-ordered float32 array (n, d), bag after bag; bag i is the slice
    ``instances[offsets[i]:offsets[i + 1]]``. Every per-bag quantity is a segment reduction, so nothing here loops over
    bags in Python. A `Bags` has a length, a `shape` of ``(m,)`` and NumPy's indexing along that axis: scikit-learn's
    splitters and searches take it as X.

    Parameters
    ----------
    instances : array (n, d)
        Kept without a copy when it is float32 and C-ordered.
    offsets : int array (m + 1,)
        Starts at 0, ends at n, strictly increasing: a bag has at least one instance.
    instance_shape : tuple of int, optional
        How one instance looks before it was flattened, e.g. ``(28, 28)``; its product is d. Default ``(d,)``.
    feature_names : sequence of d different str, optional
        What the columns are called. They travel with every selection, into files and into models.

    Examples
    --------
    >>> import numpy as np
    >>> bags = Bags.from_list([np.zeros((2, 3)), np.ones((4, 3))])
    >>> len(bags), bags.n_instances, bags.sizes
    (2, 6, array([2, 4]))
    >>> bags.max(bags.instances[:, 0])
    array([0., 1.], dtype=float32)
    """

    __slots__ = ("_bag_of_instance", "feature_names", "instance_shape", "instances", "offsets")

    instances: NDArray[np.float32]
    offsets: NDArray[np.int64]
    instance_shape: tuple[int, ...]
    feature_names: tuple[str, ...] | None
    _bag_of_instance: NDArray[np.int64] | None

    def __init__(
        self,
        instances: ArrayLike,
        offsets: ArrayLike,
        instance_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        flat = _as_instances(instances)
        edges = _as_offsets(offsets, len(flat))
        _check_finite(flat, edges)
        d = flat.shape[1]
        self._assign(flat, edges, _as_shape(instance_shape, d), _as_feature_names(feature_names, d))

    def _assign(
        self,
        instances: NDArray[np.float32],
        offsets: NDArray[np.int64],
        shape: tuple[int, ...],
        feature_names: tuple[str, ...] | None,
    ) -> None:
        instances, offsets = instances.view(), offsets.view()
        instances.flags.writeable = False
        offsets.flags.writeable = False
        for name, value in zip(
            ("instances", "offsets", "instance_shape", "feature_names", "_bag_of_instance"),
            (instances, offsets, shape, feature_names, None),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def _with(self, instances: NDArray[np.float32], offsets: NDArray[np.int64]) -> Bags:
        """Other instances of the same layout; they come from a valid `Bags`, so nothing is checked again."""
        bags = Bags.__new__(Bags)
        bags._assign(instances, offsets, self.instance_shape, self.feature_names)
        return bags

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_list(
        cls,
        bags: Sequence[ArrayLike],
        instance_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Bags:
        """Stack a list of arrays (n_i, d), or (n_i, h, w) for images, into one `Bags`."""
        if len(bags) == 0:
            raise DataError("no bags: the list is empty; pass at least one (n_i, d) array")
        arrays = [_as_bag(i, bag) for i, bag in enumerate(bags)]
        shapes = [a.shape[1:] for a in arrays]
        for i, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise DataError(
                    f"bag {i} has instances of shape {shape}, bag 0 of shape {shapes[0]}; "
                    "every bag must have the same features"
                )
        if instance_shape is None:
            instance_shape = shapes[0]
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])])
        flat = np.concatenate([a.reshape(len(a), -1) for a in arrays])
        return cls(flat, offsets, instance_shape, feature_names)

    @classmethod
    def from_array(cls, bags: ArrayLike) -> Bags:
        """Take a 3-D array (m, k, d): m bags of k instances each."""
        try:
            array = np.asarray(bags)
        except ValueError as error:
            raise DataError(
                "the bags have different numbers of instances, so they are not a 3-D array; use Bags.from_list"
            ) from error
        if array.dtype == object:
            raise DataError("the 3-D array is ragged or holds Python objects; use Bags.from_list for bags of any size")
        if array.ndim != 3:
            raise DataError(f"expected a 3-D array (bags, instances, features), got {array.ndim} dimensions")
        m, k, d = array.shape
        return cls(array.reshape(m * k, d), np.arange(m + 1) * k)

    @classmethod
    def from_flat(
        cls,
        instances: ArrayLike,
        bag_ids: ArrayLike,
        instance_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Bags:
        """Group the rows of `instances` (n, d) by `bag_ids` (n,), in any order.

        Bags come in the order in which their ids first appear, and rows keep their order inside a bag; rows that
        are grouped already are not copied.
        """
        flat = _as_instances(instances)
        order, offsets, _ = group_rows(bag_ids, len(flat))
        return cls(flat if order is None else flat[order], offsets, instance_shape, feature_names)

    @classmethod
    def from_frame(cls, frame: Any, bag: str = "bag_id", features: Sequence[str] | None = None) -> Bags:
        """Group the rows of a pandas `DataFrame` by its column `bag`; `features` defaults to all other columns."""
        if bag not in frame.columns:
            raise DataError(f"the frame has no column {bag!r}; its columns are {list(frame.columns)}")
        names = [c for c in frame.columns if c != bag] if features is None else list(features)
        return cls.from_flat(frame_features(frame, names), frame[bag].to_numpy(), feature_names=list(map(str, names)))

    @classmethod
    def concatenate(cls, parts: Sequence[Bags]) -> Bags:
        """Put several `Bags` one after the other."""
        if not parts:
            raise DataError("nothing to concatenate; pass at least one Bags")
        for i, part in enumerate(parts):
            if part.instance_shape != parts[0].instance_shape:
                raise DataError(
                    f"part {i} has instances of shape {part.instance_shape}, part 0 of {parts[0].instance_shape}"
                )
            if part.feature_names != parts[0].feature_names:
                raise DataError(f"part {i} has other feature names than part 0; select the same features in all parts")
        starts = np.cumsum([0] + [p.n_instances for p in parts])
        offsets = np.concatenate([[0]] + [p.offsets[1:] + s for p, s in zip(parts, starts, strict=False)])
        return parts[0]._with(np.concatenate([p.instances for p in parts]), offsets)

    # ---------------------------------------------------------------- sequence protocol

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """``(m,)``: one sample is one bag."""
        return (len(self),)

    @property
    def n_instances(self) -> int:
        """The number n of instances in all bags."""
        return len(self.instances)

    @property
    def n_features(self) -> int:
        """The number d of features of an instance."""
        return self.instances.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of instances of each bag (m,)."""
        return np.diff(self.offsets)

    @property
    def bag_of_instance(self) -> NDArray[np.int64]:
        """The bag index of each instance (n,), computed once."""
        index = self._bag_of_instance
        if index is None:
            index = np.repeat(np.arange(len(self)), self.sizes)
            index.flags.writeable = False
            object.__setattr__(self, "_bag_of_instance", index)
        return index

    @overload
    def __getitem__(self, key: int | np.integer) -> NDArray[np.float32]: ...
    @overload
    def __getitem__(self, key: Any) -> Bags: ...
    def __getitem__(self, key: Any) -> NDArray[np.float32] | Bags:
        """``bags[i]`` is a read-only view (n_i, d); a slice, index array or mask gives a `Bags`."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn indexes samples as X[key, ...]
        if isinstance(key, int | np.integer):
            i = range(len(self))[key]
            return self.instances[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1 and start < stop:
                low, high = self.offsets[start], self.offsets[stop]
                return self._with(self.instances[low:high], self.offsets[start : stop + 1] - low)
            key = np.arange(start, stop, step)
        index = self._as_index(key)
        offsets = np.concatenate([[0], np.cumsum(self.sizes[index])])
        return self._with(np.take(self.instances, self.rows_of(index), axis=0), offsets)

    def select_features(self, names: Sequence[str]) -> Bags:
        """The same bags with the named columns, in that order; columns that are not named are left out."""
        if self.feature_names is None:
            raise DataError("the bags have no feature names to select by; pass feature_names when they are built")
        if tuple(names) == self.feature_names:
            return self
        column = {name: j for j, name in enumerate(self.feature_names)}
        missing = [name for name in names if name not in column]
        if missing:
            shown = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise DataError(
                f"the bags have no feature {shown}; their features are {', '.join(self.feature_names[:20])}"
            )
        chosen = np.ascontiguousarray(self.instances[:, [column[name] for name in names]])
        return Bags(chosen, self.offsets, feature_names=names)

    def single_instances(self) -> Bags:
        """Every instance as a bag of its own: n bags of one instance, without a copy."""
        return self._with(self.instances, np.arange(self.n_instances + 1))

    def rows_of(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of `instances` that belong to the bags `index` (k,), bag after bag."""
        sizes = self.sizes[index]
        ends = np.cumsum(sizes)
        return np.repeat(self.offsets[index] - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)

    def _as_index(self, key: Any) -> NDArray[np.int64]:
        array = np.asarray(key)
        if array.ndim != 1:
            raise DataError(f"bags are indexed along one axis; got an index with {array.ndim} dimensions")
        if array.dtype == bool:
            if len(array) != len(self):
                raise DataError(f"the mask has {len(array)} entries for {len(self)} bags")
            array = np.flatnonzero(array)
        if len(array) == 0:
            raise DataError("the selection is empty; a Bags holds at least one bag")
        if not np.issubdtype(array.dtype, np.integer):
            raise DataError(f"bags are indexed by integers, a slice or a mask, not by {array.dtype}")
        return np.arange(len(self))[array]

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bags):
            return NotImplemented
        return (
            self.instance_shape == other.instance_shape
            and self.feature_names == other.feature_names
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.instances, other.instances)
        )

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Bags are immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Bags, (self.instances, self.offsets, self.instance_shape, self.feature_names))

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags, {self.n_instances} instances, {'x'.join(map(str, self.instance_shape))})"

    # ---------------------------------------------------------------- segment reductions

    def sum(self, values: ArrayLike) -> NDArray[Any]:
        """Sum per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.add.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def max(self, values: ArrayLike) -> NDArray[Any]:
        """Take the maximum of per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.maximum.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def min(self, values: ArrayLike) -> NDArray[Any]:
        """Take the minimum of per-instance `values` (n, ...) over each bag, to (m, ...)."""
        return np.minimum.reduceat(self._per_instance(values), self.offsets[:-1], axis=0)

    def mean(self, values: ArrayLike) -> NDArray[Any]:
        """Average per-instance `values` (n, ...) over each bag, to (m, ...)."""
        total = self.sum(values)
        if not np.issubdtype(total.dtype, np.inexact):
            total = total.astype(np.float64)
        return total / self.sizes.astype(total.dtype).reshape((-1,) + (1,) * (total.ndim - 1))

    def logsumexp(self, values: ArrayLike) -> NDArray[Any]:
        """``log sum exp`` of per-instance `values` (n, ...) over each bag, without overflow."""
        values = self._per_instance(values)
        top = self.max(values)
        shift = np.where(np.isfinite(top), top, 0)
        with np.errstate(divide="ignore"):
            return np.log(self.sum(np.exp(values - self.spread(shift)))) + shift

    def spread(self, values: ArrayLike) -> NDArray[Any]:
        """Repeat per-bag `values` (m, ...) for every instance of the bag, to (n, ...)."""
        array = np.asarray(values)
        if len(array) != len(self):
            raise DataError(f"expected one value a bag ({len(self)}), got {len(array)}")
        return np.repeat(array, self.sizes, axis=0)

    def _per_instance(self, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != self.n_instances:
            raise DataError(f"expected one value an instance ({self.n_instances}), got shape {array.shape}")
        return array


def as_bags(bags: Any) -> Bags:
    """Turn what a user passes as bags (a `Bags`, a list of 2-D arrays, a 3-D array) into a `Bags`."""
    if isinstance(bags, Bags):
        return bags
    if isinstance(bags, np.ndarray) and bags.dtype != object:
        return Bags.from_array(bags)
    if isinstance(bags, list | tuple | np.ndarray):
        return Bags.from_list(list(bags))
    raise DataError(
        f"cannot read bags from {type(bags).__name__}; pass a Bags, a list of (n_i, d) arrays or a 3-D array "
        "(see Bags.from_flat and Bags.from_frame for tables)"
    )


def group_rows(bag_ids: ArrayLike, n_rows: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[Any]]:
    """Sort rows by bag id, stably, bags in order of first appearance.

    Returns the row order (``None`` when the rows are grouped already), the offsets (m + 1,) and the ids (m,).
    """
    ids = np.asarray(bag_ids)
    if ids.ndim != 1 or len(ids) != n_rows:
        raise DataError(f"expected one bag id a row ({n_rows}), got shape {ids.shape}")
    if n_rows == 0:
        raise DataError("no instances: the table has no rows")
    if ids.dtype == object:
        ids = _plain_ids(ids)
    if np.issubdtype(ids.dtype, np.floating) and np.isnan(ids).any():
        raise DataError(f"row {int(np.flatnonzero(np.isnan(ids))[0])} has no bag id")
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    if len(np.unique(ids[starts])) == len(starts):
        return None, np.append(starts, n_rows), ids[starts]
    unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(unique))
    bag = rank[inverse]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(bag))])
    return np.argsort(bag, kind="stable"), offsets, ids[np.sort(first)]


def frame_features(frame: Any, names: Sequence[str]) -> NDArray[np.float32]:
    """Read numeric feature columns of a pandas frame; the error names the column and row that is not a number."""
    if not names:
        raise DataError("the frame has no feature columns")
    columns = []
    for name in names:
        if name not in frame.columns:
            raise DataError(f"the frame has no column {name!r}; its columns are {list(frame.columns)}")
        try:
            column = frame[name].to_numpy(dtype=np.float32, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise DataError(f"column {name!r} is not numeric ({error}); drop it or name the feature columns") from error
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise DataError(f"column {name!r}, row {bad[0]} is missing or not finite; fill it or drop the row")
        columns.append(column)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Integers or strings out of an object array, as pandas gives it."""
    missing = np.flatnonzero((ids == np.array(None)) | (ids != ids))
    if len(missing):
        raise DataError(f"row {missing[0]} has no bag id")
    try:
        numbers = ids.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        return ids.astype(str)
    return numbers if np.array_equal(numbers.astype(object), ids) else ids.astype(str)


def _as_instances(instances: ArrayLike) -> NDArray[np.float32]:
    array = np.asarray(instances)
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


def _as_bag(i: int, bag: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(bag)
    except ValueError as error:
        raise DataError(f"bag {i} is ragged: its instances differ in length") from error
    if array.dtype == object:
        raise DataError(f"bag {i} holds Python objects, not numbers; convert it to a float array first")
    if array.dtype.kind not in "fiub":
        raise DataError(f"bag {i} is of type {array.dtype}, not real numbers")
    if array.ndim < 2:
        raise DataError(f"bag {i} has shape {array.shape}; a bag is a 2-D array (instances, features)")
    if len(array) == 0:
        raise DataError(f"bag {i} is empty; drop it, a bag has at least one instance")
    if array[0].size == 0:
        raise DataError(f"bag {i} has no features (shape {array.shape})")
    return array


def _as_offsets(offsets: ArrayLike, n: int) -> NDArray[np.int64]:
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


def _as_shape(shape: Sequence[int] | None, d: int) -> tuple[int, ...]:
    full = (d,) if shape is None else tuple(int(s) for s in shape)
    if int(np.prod(full)) != d:
        raise DataError(f"instance_shape {full} has {int(np.prod(full))} entries, the instances have {d} features")
    return full


def _shown(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + rest


def _as_feature_names(names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    given = tuple(names)
    if len(given) != d or not all(isinstance(name, str) for name in given):
        raise DataError(f"feature_names must be {d} strings, one per feature, got {len(given)}: {list(given)[:5]}")
    twice = [name for name in given if given.count(name) > 1] if len(set(given)) < d else []
    if twice:
        raise DataError(f"the feature name {twice[0]!r} occurs {given.count(twice[0])} times; names must differ")
    return given


def _check_finite(instances: NDArray[np.float32], offsets: NDArray[np.int64]) -> None:
    # A float64 sum of finite float32 numbers cannot overflow, so one pass without a temporary decides.
    if np.isfinite(np.sum(instances, dtype=np.float64)):
        return
    row, column = np.argwhere(~np.isfinite(instances))[0]
    bag = int(np.searchsorted(offsets, row, side="right")) - 1
    raise DataError(
        f"bag {bag}, instance {row - offsets[bag]}, feature {column} is {instances[row, column]}; "
        "replace missing or infinite values before building bags (values beyond 3.4e38 overflow float32)"
    )
