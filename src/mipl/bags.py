"""Bags: m variable-sized sets of instances in one flat array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.arrays import as_array, as_pandas, is_tensor
from mipl.bag_lists import Channels, stack_bags
from mipl.errors import DataError
from mipl.html_reprs import bags_html
from mipl.instances import as_feature_names, as_instance_shape, as_instances, as_offsets, check_finite
from mipl.rows import check_columns, frame_features, group_rows, instances_frame
from mipl.segments import Segments

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Bags", "as_bags"]


class Bags(Segments):
    """An immutable sequence of m bags over n instances with d features.

    All instances lie in one C-ordered float32 array (n, d), bag after bag; bag i is the slice
    ``instances[offsets[i]:offsets[i + 1]]``. Every per-bag quantity is a segment reduction, so nothing here loops over
    bags in Python. A `Bags` has a length, a `shape` of ``(m,)`` and NumPy's indexing along that axis: scikit-learn's
    splitters and searches take it as X.

    Parameters
    ----------
    instances : array (n, d)
        All instances, bag after bag. Kept without a copy when it is float32 and C-ordered.
    offsets : int array (m + 1,)
        Where each bag starts; it begins with 0, ends with n and is strictly increasing, as a bag has at least one
        instance.
    instance_shape : tuple of int, default=(d,)
        The shape of one instance before it was flattened, e.g. ``(28, 28)``; its product is d.
    feature_names : sequence of d different str, default=None
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
        flat = as_instances(instances)
        edges = as_offsets(offsets, len(flat))
        shape = as_instance_shape(instance_shape, flat.shape[1])
        names = as_feature_names(feature_names, flat.shape[1])
        check_finite(flat, edges, names)
        self._assign(flat, edges, shape, names)

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

    def _with(
        self, instances: NDArray[np.float32], offsets: NDArray[np.int64], shape: tuple[int, ...] | None = None
    ) -> Bags:
        """Other instances of the same features; they come from a valid `Bags`, so nothing is checked again."""
        bags = Bags.__new__(Bags)
        bags._assign(instances, offsets, shape or self.instance_shape, self.feature_names)
        return bags

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_list(
        cls,
        bags: Sequence[Any],
        instance_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        channels: Channels | None = None,
    ) -> Bags:
        """Stack a list of bags into one `Bags`.

        Parameters
        ----------
        bags : sequence of m arrays (n_i, d), or (n_i, h, w), (n_i, h, w, c) or (n_i, c, h, w) for images
            One array, sparse matrix, tensor or frame per bag. The columns of frames name the features.
        instance_shape : tuple of int, default=None
            The shape of one instance; None takes it from the arrays. Images are (h, w) or (h, w, c).
        feature_names : sequence of d different str, default=None
            What the features are called; None takes the columns of frames.
        channels : {"first", "last"}, default=None
            Where the channels of colour images are; None: at the end of the shape that has 1, 3 or 4 entries. They are
            kept at the end, (h, w, c).
        """
        flat, offsets, shape, names = stack_bags(bags, instance_shape, channels)
        return cls(flat, offsets, shape, feature_names or names)

    @classmethod
    def from_array(cls, bags: ArrayLike) -> Bags:
        """Read an array (m, k, d), or (m, k, h, w[, c]) of images: m bags of k instances each."""
        try:
            array = as_array(bags, "the array")
        except DataError as error:
            if not isinstance(error.__cause__, ValueError):
                raise
            raise DataError(
                "the bags have different numbers of instances, so they are not a 3-D array; use Bags.from_list"
            ) from error
        if array.dtype == object:
            raise DataError("the 3-D array is ragged or holds Python objects; use Bags.from_list for bags of any size")
        if array.ndim < 3:
            raise DataError(
                f"expected a 3-D array (bags, instances, features), got {array.ndim} dimensions; where each row is an "
                "instance, say which bag it belongs to: Bags.from_flat(X, bag_ids)"
            )
        return cls.from_list(list(array))

    @classmethod
    def from_flat(
        cls,
        instances: ArrayLike,
        bag_ids: ArrayLike,
        instance_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Bags:
        """Group rows by the bag that they belong to.

        Bags come in the order in which their ids first appear, and rows keep their order inside a bag; rows that
        are grouped already are not copied.

        Parameters
        ----------
        instances : array (n, d)
            One row per instance, in any order.
        bag_ids : (n,) integers or strings
            The bag of each row.
        instance_shape : tuple of int, default=(d,)
            The shape of one instance before it was flattened.
        feature_names : sequence of d different str, default=None
            What the columns are called.
        """
        flat = as_instances(instances)
        order, offsets, _ = group_rows(bag_ids, len(flat))
        return cls(flat if order is None else flat[order], offsets, instance_shape, feature_names)

    @classmethod
    def from_frame(cls, frame: Any, bag: str = "bag_id", features: Sequence[str] | None = None) -> Bags:
        """Group the rows of a frame by the bag that they belong to; its columns name the features.

        Parameters
        ----------
        frame : pandas.DataFrame, or a table of polars or pyarrow
            One row per instance.
        bag : str, default="bag_id"
            The column that says which bag a row belongs to.
        features : sequence of str, default=None
            The feature columns; None takes all columns but `bag`.
        """
        frame = as_pandas(frame)
        names = [c for c in frame.columns if c != bag] if features is None else list(features)
        check_columns(frame, [bag, *names])
        return cls.from_flat(frame_features(frame[names]), frame[bag].to_numpy(), feature_names=list(map(str, names)))

    def to_frame(self, bag_ids: Sequence[Any] | NDArray[Any] | None = None) -> pd.DataFrame:
        """One row per instance as a pandas frame: the column ``bag_id`` and one per feature; `from_frame` reads it.

        Parameters
        ----------
        bag_ids : sequence of m integers or strings, default=None
            What the bags are called; None counts them. Features without names are ``f0``, ``f1``, ...
        """
        ids = np.arange(len(self)) if bag_ids is None else np.asarray(bag_ids)
        return instances_frame(self.spread(ids), self.instances, self.feature_names)

    @classmethod
    def concatenate(cls, parts: Sequence[Bags]) -> Bags:
        """Put several `Bags` one after the other; columns are matched by name where all parts have feature names."""
        if not parts:
            raise DataError("nothing to concatenate; pass at least one Bags")
        first = parts[0]
        for i, part in enumerate(parts):
            if (part.feature_names is None) != (first.feature_names is None):
                named, unnamed = (0, i) if part.feature_names is None else (i, 0)
                raise DataError(f"part {named} has feature names, part {unnamed} has none; name the features of both")
            if part.feature_names is None and part.instance_shape != first.instance_shape:
                raise DataError(
                    f"part {i} has instances of shape {part.instance_shape}, part 0 of {first.instance_shape}"
                )
        if first.feature_names is not None:
            parts = [part.match_features(first.feature_names, owner="part 0") for part in parts]
        starts = np.cumsum([0] + [p.n_instances for p in parts])
        offsets = np.concatenate([[0]] + [p.offsets[1:] + s for p, s in zip(parts, starts, strict=False)])
        return first._with(np.concatenate([p.instances for p in parts]), offsets)

    # ---------------------------------------------------------------- sequence protocol

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
        return int(self.instances.shape[1])

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
        """The same bags with the named columns only, in that order.

        Parameters
        ----------
        names : sequence of str
            Some of `feature_names`; columns that are not named are left out.
        """
        if self.feature_names is None:
            raise DataError("the bags have no feature names to select by; pass feature_names when they are built")
        if tuple(names) == self.feature_names:
            return self
        column = {name: j for j, name in enumerate(self.feature_names)}
        missing = [name for name in names if name not in column]
        if missing:
            raise DataError(
                f"the bags have no feature {_shown(missing)}; their features are {_shown(self.feature_names)}"
            )
        chosen = np.ascontiguousarray(self.instances[:, [column[name] for name in names]])
        return Bags(chosen, self.offsets, feature_names=names)

    def match_features(self, names: Sequence[str], owner: str) -> Bags:
        """The same bags with their columns in the order of `names`, which must be exactly their features.

        Parameters
        ----------
        names : sequence of str
            The features that `owner` has, in its order.
        owner : str
            What an error calls the other side, e.g. ``"the model"``.
        """
        have = self.feature_names or ()
        missing = [name for name in names if name not in set(have)]
        if missing:
            raise DataError(f"{owner} has the feature {_shown(missing)}, the bags have not; they have {_shown(have)}")
        extra = [name for name in have if name not in set(names)]
        if extra:
            raise DataError(
                f"the bags have the feature {_shown(extra)}, {owner} has not; leave it out by Bags.select_features"
            )
        return self.select_features(names)

    def with_instance_shape(self, shape: tuple[int, ...], owner: str) -> Bags:
        """The same bags with instances of the shape that `owner` expects; a vector or a single channel fits any.

        Parameters
        ----------
        shape : tuple of int
            The shape of an instance.
        owner : str
            What an error calls the other side, e.g. ``"the model"``.
        """
        if shape == self.instance_shape:
            return self
        have, wanted = (tuple(s for s in each if s != 1) for each in (self.instance_shape, shape))
        if have != wanted and min(len(have), len(wanted)) > 1:
            raise DataError(
                f"the bags have instances of shape {self.instance_shape}, {owner} has {shape}; images are "
                "(height, width, channels): turn (channels, height, width) by Bags.from_list(bags, channels='first'), "
                "and resize images of other sizes"
            )
        return self._with(self.instances, self.offsets, shape)

    def single_instances(self) -> Bags:
        """Every instance as a bag of its own: n bags of one instance, without a copy."""
        return self._with(self.instances, np.arange(self.n_instances + 1))

    def rows_of(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of `instances` that belong to the bags with these indices (k,), bag after bag."""
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
        index: NDArray[np.int64] = np.arange(len(self))[array]
        return index

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

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to be an array, which bags of different sizes are not: transformers of scikit-learn ask for one."""
        raise DataError(
            "bags are no array with one row per sample: in a pipeline, and anywhere else, let a transformer of "
            "scikit-learn work on their instances by mipl.BagTransformer(transformer); bags.instances has all instances"
        )

    def _repr_html_(self) -> str:
        return bags_html(self)

    def __repr__(self) -> str:
        return f"Bags({len(self)} bags, {self.n_instances} instances, {'x'.join(map(str, self.instance_shape))})"


def as_bags(bags: Any, bag_ids: Sequence[Any] | NDArray[Any] | None = None) -> Bags:
    """Turn what a user passes as bags into a `Bags`.

    Parameters
    ----------
    bags : Bags, list of (n_i, d) arrays, sparse matrices, tensors or frames, or 3-D array or tensor
        Images may be (n_i, h, w), (n_i, h, w, c) or (n_i, c, h, w).
    bag_ids : sequence of m ids, default=None
        What errors call the bags; None counts them.
    """
    if isinstance(bags, Bags):
        return bags
    if is_tensor(bags) or (isinstance(bags, np.ndarray) and bags.dtype != object):
        return Bags.from_array(bags)
    if getattr(bags, "ndim", 0) == 1 and hasattr(bags, "to_list"):  # a pandas column of arrays
        bags = bags.to_list()
    if isinstance(bags, list | tuple | np.ndarray):
        flat, offsets, shape, names = stack_bags(list(bags), bag_ids=bag_ids)
        instances = as_instances(flat)
        check_finite(instances, offsets, names, bag_ids)
        return Bags(instances, offsets, shape, names)
    raise DataError(
        f"cannot read bags from {type(bags).__name__}; pass a Bags, a list of (n_i, d) arrays or a 3-D array "
        "(see Bags.from_flat and Bags.from_frame for tables)"
    )


def _shown(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(str(name)) for name in names[:most]) + rest
