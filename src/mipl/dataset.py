"""MIPLDataset: bags with candidate sets and, where known, the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.arrays import as_pandas, unwrapped
from mipl.bag_ids import as_bag_ids
from mipl.bags import Bags, as_bags
from mipl.candidates import bag_name, check_weights, label_names, parse_labels, parse_votes
from mipl.errors import DataError, ParameterError
from mipl.html_reprs import dataset_html
from mipl.rows import check_columns, dataset_frame, frame_features, group_rows, one_per_bag
from mipl.splitting import split_groups, split_order, train_count
from mipl.supervision import Supervision, background_column, check_groups
from mipl.visible_text import as_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MIPLDataset", "split_order"]


class MIPLDataset:
    """m bags, the candidate labels of each, and what else is known about them.

    Parameters
    ----------
    bags : Bags, list of (n_i, d) arrays, sparse matrices, tensors or frames, or 3-D array
        The bags, see `Bags.from_list`; feature names travel with a `Bags` and with frames.
    candidates : (m, q) mask or weights, or m collections of labels, mappings from labels to weights, strings or None
        The candidate labels of each bag, see `mipl.candidates.parse_votes`. A label that is known for certain is a
        candidate set of one; None stands for a bag of which nothing is known, all classes being candidates. The
        attribute holds a bool mask.
    labels : (m,) labels, default=None
        The true label of each bag, for evaluation only: no method learns from it. None where unknown. It may lie
        outside the candidates, see `labels_outside`. Where `classes` are strings, class indices are taken too (-1 for
        unknown). The attribute holds class indices.
    classes : (q,) names, default=None
        The classes in their order; None stands for ``0..q-1`` for a mask, else for the sorted labels that occur.
    instance_labels : (n,) int, default=None
        Class index of each instance, q for a negative instance, -1 where unknown.
    bag_ids : (m,) unique integers or strings, default=None
        What the bags are called, in files and in errors; None stands for ``0..m-1``.
    name : str, default=""
        What the data set is called in tables.
    description : str, default=""
        Where the data come from and how the features were scaled.
    groups : (m,) integers or names, default=None
        Bags that share a source (a recording, a patient, a page); `split` keeps those of one group on one side. The
        attribute holds integers: names are numbered in their order.
    candidate_weights : (m, q) float, default=None
        Votes or weights of the candidates, positive on these and zero elsewhere; None takes what `candidates` say, and
        where these are plain sets the attribute is None.
    background : label, default=None
        The class whose bags hold no positive instance ("silence"), one of `classes`.

    Examples
    --------
    >>> import numpy as np
    >>> ds = MIPLDataset([np.zeros((2, 3)), np.ones((4, 3))], [{"owl", "wren"}, {"owl"}], labels=["wren", "owl"])
    >>> ds.labels, ds.candidates.shape
    (array([1, 0]), (2, 2))
    """

    bags: Bags
    candidates: NDArray[np.bool_]
    labels: NDArray[np.int64] | None
    classes: NDArray[Any]
    instance_labels: NDArray[np.int64] | None
    bag_ids: NDArray[Any]
    groups: NDArray[np.int64] | None
    candidate_weights: NDArray[np.float64] | None
    background: Any
    #: The options of `mipl.load` that its files were read with, for models to remember; empty for other data sets.
    reading: dict[str, Any]

    def __init__(
        self,
        bags: Any,
        candidates: Any,
        labels: Any = None,
        classes: Any = None,
        instance_labels: Any = None,
        bag_ids: Any = None,
        name: str = "",
        description: str = "",
        groups: Any = None,
        candidate_weights: Any = None,
        background: Any = None,
    ) -> None:
        named = bag_ids is not None and hasattr(bags, "__len__") and len(bags) == len(bag_ids)
        self.bags = as_bags(bags, bag_ids if named else None)
        ids = _check_bag_ids(bag_ids, len(self.bags))
        mask, weights, names = parse_votes(candidates, classes, bag_ids=ids)
        if candidate_weights is not None:
            weights = check_weights(candidate_weights, mask, ids)
        self.bag_ids = _frozen(ids)
        self.candidates = _frozen(mask)
        self.classes = _frozen(names)
        self.labels = _frozen(_check_labels(labels, names, ids))
        self.instance_labels = _frozen(_check_instance_labels(instance_labels, self.bags, len(names), ids))
        self.groups = _frozen(check_groups(groups, len(self.bags), ids))
        self.candidate_weights = _frozen(weights)
        column = background_column(background, names)
        self.background = None if column is None else names[column].item()
        self.name = as_text(name)
        self.description = as_text(description)
        self.reading = {}

    def __repr__(self) -> str:
        weights = "" if self.candidate_weights is None else ", weighted candidates"
        background = "" if self.background is None else f", background={self.background!r}"
        outside = len(self.labels_outside())
        remark = f", {outside} true labels outside the candidates" if outside else ""
        return f"MIPLDataset({self.name!r}, {self.bags!r}, {self.n_classes} classes{weights}{background}{remark})"

    def _repr_html_(self) -> str:
        return dataset_html(self)

    # ---------------------------------------------------------------- construction and files

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        bag: str = "bag_id",
        candidates: str = "candidates",
        label: str | None = None,
        features: Sequence[str] | None = None,
        classes: Sequence[Any] | None = None,
        name: str = "",
        background: Any = None,
    ) -> MIPLDataset:
        """Read a frame with one row per instance; its columns name the features.

        It takes the columns as it is told, and refuses what is no number. `mipl.load` takes a frame too, and finds out
        about its columns as about those of a file.

        Parameters
        ----------
        frame : pandas.DataFrame, or a table of polars or pyarrow
            One row per instance; what belongs to a bag stands in its first row, and later rows repeat it or are empty.
        bag : str, default="bag_id"
            The column that says which bag a row belongs to.
        candidates : str, default="candidates"
            The column of candidate sets: collections of labels, mappings from labels to weights, or strings ``"a|b"``
            or ``"a:3|b:1"``; where it is empty nothing is known, and all classes are candidates.
        label : str, default=None
            The column of true labels; None takes the column ``"label"`` where there is one.
        features : sequence of str, default=None
            The feature columns; None takes all columns but those above.
        classes : sequence of q labels, default=None
            The classes in their order; None takes the sorted labels that occur.
        name : str, default=""
            What the data set is called in tables.
        background : label, default=None
            The class whose bags hold no positive instance.
        """
        frame = as_pandas(frame)
        check_columns(frame, [bag, candidates, *([label] if label else [])])
        if label is None and "label" in frame.columns:
            label = "label"
        if features is None:
            features = [c for c in frame.columns if c not in (bag, candidates, label)]
        check_columns(frame, features)
        flat = frame_features(frame[list(features)])
        order, offsets, ids = group_rows(frame[bag].to_numpy(), len(flat))
        rows = np.arange(len(flat)) if order is None else order
        sets = one_per_bag(frame[candidates], rows, offsets, ids)
        return cls(
            bags=Bags(flat[rows], offsets, feature_names=list(map(str, features))),
            candidates=sets,
            classes=classes,
            labels=one_per_bag(frame[label], rows, offsets, ids) if label else None,
            bag_ids=ids,
            name=name,
            background=background,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per instance as a pandas frame, see `mipl.rows.dataset_frame`; `from_frame` reads it."""
        return dataset_frame(self)

    def save(self, path: str | Path) -> Path:
        """Write the data set to one file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to; the suffix chooses the format (.parquet, .npz, .csv, .mat).
        """
        from mipl.io import write

        return write(self, path)

    # ---------------------------------------------------------------- selection

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to be an array: transformers of scikit-learn ask for rows, and splitters for labels."""
        raise DataError(
            "a data set is no array: in a pipeline, and anywhere else, let a transformer of scikit-learn work on the "
            "instances by mipl.BagTransformer(transformer); where labels are asked for, as by StratifiedKFold, pass "
            "these: split(ds, ds.labels)"
        )

    def __len__(self) -> int:
        return len(self.bags)

    @property
    def shape(self) -> tuple[int]:
        """``(m,)``: one sample is one bag, so that scikit-learn's splitters and searches take a data set as X."""
        return (len(self),)

    def candidate_sets(self) -> list[list[Any]]:
        """The candidate labels of each bag, by name: m lists."""
        return [self.classes[row].tolist() for row in self.candidates]

    def label_names(self) -> list[Any] | None:
        """The true label of each bag by name, None where unknown."""
        return label_names(self.labels, self.classes)

    def supervision(self) -> Supervision:
        """What a method may learn from: candidates, weights, background and groups, but not the true labels."""
        background = background_column(self.background, self.classes)
        return Supervision(self.candidates, self.candidate_weights, background, self.groups)

    def labels_outside(self) -> NDArray[np.int64]:
        """The bags, by position, whose true label is known and not among their candidates."""
        if self.labels is None:
            return np.array([], dtype=np.int64)
        known = np.flatnonzero(self.labels >= 0)
        return known[~self.candidates[known, self.labels[known]]]

    @property
    def n_classes(self) -> int:
        """The number q of classes."""
        return len(self.classes)

    def __getitem__(self, key: Any) -> MIPLDataset:
        """Select bags by slice, index array or mask; a single integer gives a data set of one bag."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn indexes samples as X[key, ...]
        index = np.atleast_1d(np.arange(len(self))[key])
        part = MIPLDataset(
            bags=self.bags[key if isinstance(key, slice) else index],
            candidates=self.candidates[index],
            labels=None if self.labels is None else label_names(self.labels[index], self.classes),
            classes=self.classes,
            instance_labels=None if self.instance_labels is None else self.instance_labels[self.bags.rows_of(index)],
            bag_ids=_selected_ids(self.bag_ids, index),
            name=self.name,
            description=self.description,
            groups=None if self.groups is None else self.groups[index],
            candidate_weights=None if self.candidate_weights is None else self.candidate_weights[index],
            background=self.background,
        )
        part.reading = self.reading
        return part

    def with_bags(self, bags: Bags) -> MIPLDataset:
        """The same data set with other instances: `bags` has the same sizes, whatever its features."""
        if not np.array_equal(bags.offsets, self.bags.offsets):
            raise DataError("the other bags have other sizes; what is known of the bags and instances would not fit")
        other = copy(self)
        other.bags = bags
        return other

    def split(
        self, train_size: float | int = 0.5, seed: int = 0, stratify: bool = False
    ) -> tuple[MIPLDataset, MIPLDataset]:
        """Split the bags at random into a training and a test set.

        A data set with `groups` is split between groups, never inside one, as near to `train_size` as that allows.

        Parameters
        ----------
        train_size : float in (0, 1) or int, default=0.5
            Share or number of training bags.
        seed : int, default=0
            The same seed gives the same split on every machine.
        stratify : bool, default=False
            Keep the share of each true label the same on both sides; needs `labels`.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(f"seed={seed!r}; a split takes an int that is not negative")
        k = train_count(len(self), train_size)
        if self.groups is not None:
            if stratify:
                raise ParameterError("a data set with groups is split by group; stratify=True cannot be had as well")
            train = split_groups(self.groups, k, seed)
            return self[train], self[~train]
        strata = None
        if stratify:
            if self.labels is None or (self.labels < 0).any():
                raise ParameterError("stratify=True needs the true label of every bag; pass stratify=False")
            strata = self.labels
        order = split_order(len(self), seed, strata)
        return self[np.sort(order[:k])], self[np.sort(order[k:])]

    def splits(self, name: str | Path) -> Iterator[tuple[MIPLDataset, MIPLDataset]]:
        """Published splits of these bags, one (training, test) pair after the other.

        Parameters
        ----------
        name : str or Path
            ``"mnist_5050"`` or ``"mnist_7030"`` (ten splits each of the 500 bags of MNIST-MIPL), or a folder with files
            ``index*.mat``, which hold ``trainIndex`` and ``testIndex`` counted from 1.
        """
        from mipl.datasets.splits import read_splits

        pairs = read_splits(name, len(self))
        return ((self[train], self[test]) for train, test in pairs)

    # ---------------------------------------------------------------- description

    def summary(self) -> dict[str, Any]:
        """The columns of the paper's table of data sets, as a dictionary.

        ``positive`` is the share of instances of a target class in percent, None where instance labels are unknown;
        ``candidates`` is the mean size of a candidate set. Only where there is something to say, ``weights`` is the
        mean sum of a bag's weights, ``background`` the background class, and ``outside`` the number of bags whose true
        label is not among their candidates.
        """
        sizes = self.bags.sizes
        positive = None
        if self.instance_labels is not None and (self.instance_labels >= 0).all():
            positive = 100.0 * float(np.mean(self.instance_labels < self.n_classes))
        summary = {
            "name": self.name,
            "bags": len(self),
            "instances": self.bags.n_instances,
            "max": int(sizes.max()),
            "min": int(sizes.min()),
            "dims": self.bags.n_features,
            "classes": self.n_classes,
            "candidates": float(self.candidates.sum(axis=1).mean()),
            "positive": positive,
        }
        if self.candidate_weights is not None:
            summary["weights"] = float(self.candidate_weights.sum(axis=1).mean())
        if self.background is not None:
            summary["background"] = self.background
        if len(self.labels_outside()):
            summary["outside"] = len(self.labels_outside())
        return summary

    def equals(self, other: MIPLDataset) -> bool:
        """Say whether both hold the same data, feature names included; `name` and `description` may differ."""
        return (
            self.bags == other.bags
            and np.array_equal(self.candidates, other.candidates)
            and np.array_equal(self.classes, other.classes)
            and _same(self.labels, other.labels)
            and _same(self.instance_labels, other.instance_labels)
            and np.array_equal(self.bag_ids, other.bag_ids)
            and _same(self.groups, other.groups)
            and _same(self.candidate_weights, other.candidate_weights)
            and self.background == other.background
        )


ArrayOrNone = TypeVar("ArrayOrNone", bound=NDArray[Any] | None)


def _frozen(array: ArrayOrNone) -> ArrayOrNone:
    """The array as a read-only view, so that nobody changes a data set under another's feet."""
    if array is not None:
        array = array.view()
        array.flags.writeable = False
    return array


def _check_labels(labels: Any, classes: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.int64] | None:
    index = None if labels is None else parse_labels(labels, classes, bag_ids=ids)
    return index if index is not None and (index >= 0).any() else None


def _check_instance_labels(labels: ArrayLike | None, bags: Bags, q: int, ids: NDArray[Any]) -> NDArray[np.int64] | None:
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (bags.n_instances,) or not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"instance_labels must be {bags.n_instances} integers, got {array.dtype} {array.shape}")
    bad = np.flatnonzero((array < -1) | (array > q))
    if len(bad):
        bag = int(bags.bag_of_instance[bad[0]])
        raise DataError(
            f"{bag_name(bag, ids)}, instance {bad[0] - bags.offsets[bag]} has the instance label {array[bad[0]]}; "
            f"use 0..{q - 1} for a class, {q} for negative, -1 for unknown"
        )
    return array.astype(np.int64)


def _check_bag_ids(ids: Any, m: int) -> NDArray[Any]:
    if ids is None:
        return np.arange(m)
    given = unwrapped(ids)
    given = given if isinstance(given, np.ndarray) else list(given)
    if np.shape(given)[:1] != (m,) or getattr(given, "ndim", 1) != 1:
        raise DataError(f"{np.size(given)} bag ids for {m} bags; there must be one per bag")
    array = as_bag_ids(given)
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) != m:
        raise DataError(
            f"the bag id {unique[counts > 1][0].item()!r} occurs {counts.max()} times; bag ids must be unique"
        )
    return array


def _selected_ids(ids: NDArray[Any], index: NDArray[np.int64]) -> NDArray[Any] | None:
    return ids[index] if len(np.unique(index)) == len(index) else None


def _same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)
