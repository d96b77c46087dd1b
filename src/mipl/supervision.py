"""Supervision: what is known of the labels of training bags, as `fit` hands it to a method."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.arrays import unwrapped
from mipl.candidates import bag_name
from mipl.errors import DataError
from mipl.votes import is_missing

__all__ = [
    "Supervision",
    "background_column",
    "check_groups",
    "check_sample_weight",
    "possible_classes",
    "warn_of_impossible",
    "warn_sets_only",
]

#: More than any count of bags; products of a few weights still fit into double precision.
_LARGEST_WEIGHT = 1e30
#: Names that a warning lists at most.
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Supervision:
    """What is known of the labels of m bags.

    A known label is a candidate set of one; a bag of which nothing is known has all classes as candidates.

    Parameters
    ----------
    candidates : (m, q) bool
        Which classes may be the true one; at least one per bag.
    weights : (m, q) float64, default=None
        Weights of the candidates: positive on these, zero elsewhere. Whole numbers are counts of people who named them,
        if any of these is above one, and others are prior odds. Bags without votes among others with votes have 0.5 for
        each candidate. None for plain candidate sets.
    background : int, default=None
        The column of the background class: a bag of this class has no positive instance.
    groups : (m,) int64, default=None
        Bags of one group share a source, so what is held out is held out by group.
    sample_weight : (m,) float64, default=None
        How often each bag counts; None for once each. A method sees positive weights only, see `counting`.
    """

    candidates: NDArray[np.bool_]
    weights: NDArray[np.float64] | None = None
    background: int | None = None
    groups: NDArray[np.int64] | None = None
    sample_weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: Any) -> Supervision:
        """Select bags by slice, index array or mask."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Supervision(**{k: v[index] if isinstance(v, np.ndarray) else v for k, v in values.items()})

    def of_classes(self, columns: NDArray[np.int64]) -> Supervision:
        """The same with these columns (k,) alone, in ascending order; each bag has a candidate among them."""
        if len(columns) == self.candidates.shape[1]:
            return self
        weights = None if self.weights is None else self.weights[:, columns]
        background = next(iter(np.flatnonzero(columns == self.background).tolist()), None)
        return replace(self, candidates=self.candidates[:, columns], weights=weights, background=background)

    def counting(self) -> tuple[NDArray[np.bool_] | None, Supervision]:
        """Which bags count (m,), None for all, and what is known of these; weights of one are none at all."""
        weight = self.sample_weight
        if weight is None:
            return None, self
        counts = weight > 0
        rest = self if counts.all() else self[counts]
        if (weight[counts] == 1).all():
            rest = replace(rest, sample_weight=None)
        return (None if counts.all() else counts), rest


def possible_classes(candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which classes (q,) are a candidate of some bag, from the mask (m, q).

    A bag of which nothing is known, all classes being its candidates, makes none possible by itself. Where all bags are
    such, all classes are possible; and so are both of two, of which a set of both is the only one that is in doubt.

    >>> possible_classes(np.array([[True, True, False], [True, True, True]])).tolist()
    [True, True, False]
    """
    told = ~candidates.all(axis=1)
    counting = candidates[told] if told.any() and candidates.shape[1] > 2 else candidates
    return np.asarray(counting.any(axis=0))


def warn_of_impossible(names: NDArray[Any], stacklevel: int = 2) -> None:
    """Warn of the classes of these names that no training bag makes possible, if there are any."""
    missing = list(map(repr, names.tolist()))
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
        warnings.warn(
            f"no training bag has the candidate {shown}, so its probability is zero in all answers (bags of which "
            "nothing is known do not count); add bags with such a candidate, or leave the class out",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def background_column(background: Any, classes: NDArray[Any]) -> int | None:
    """The column of the background class (a label), None where there is none.

    >>> background_column("silence", np.array(["owl", "silence"]))
    1
    """
    if background is None:
        return None
    names = classes.tolist()
    label = background.item() if isinstance(background, np.generic) else background
    if isinstance(label, bool) or label not in names:
        raise DataError(f"the background class {label!r} is not among the classes {names}")
    column: int | None = names.index(label)
    return column


def check_groups(groups: Any, m: int, bag_ids: NDArray[Any] | None = None) -> NDArray[np.int64] | None:
    """The group of each of m bags as int64, None where there are none: integers as they are, names numbered in order.

    >>> check_groups(["south", "north", "south"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        return None
    groups = unwrapped(groups)
    wanted = f"groups must be {m} integers, one per bag, or as many names"
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable) or getattr(groups, "ndim", 1) != 1:
        raise DataError(wanted)
    names = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    if len(names) != m:
        raise DataError(f"{wanted}, got {len(names)}")
    for i, name in enumerate(names):
        if is_missing(name):
            raise DataError(f"{bag_name(i, bag_ids)} has no group; give every bag one")
        if isinstance(name, float) and not name.is_integer():
            raise DataError(f"{wanted}, got {name}; a number with a fraction is rather a feature")
    if all(isinstance(name, int | float | np.integer) and -(2**63) <= name < 2**63 for name in names):
        return np.array(names, dtype=np.int64)
    try:
        number = {name: k for k, name in enumerate(sorted(dict.fromkeys(names), key=str))}
    except TypeError as error:
        raise DataError(f"{wanted} ({error})") from error
    return np.array([number[name] for name in names])


def check_sample_weight(
    sample_weight: ArrayLike | None, m: int, bag_ids: NDArray[Any] | None = None, what: str = "bag"
) -> NDArray[np.float64] | None:
    """The weight of each of m bags as float64, None where there are none: zero, or 1e-30 to 1e30; and not all zero.

    Errors call a bag by its id, or by `what` it is and its position.

    >>> check_sample_weight([1, -2], 2, what="sample")
    Traceback (most recent call last):
    mipl.errors.DataError: sample 1 has the sample weight -2; it must be a finite number from 0 up
    """
    if sample_weight is None:
        return None
    array = np.asarray(sample_weight)
    if array.shape != (m,) or array.dtype.kind not in "biuf":
        raise DataError(
            f"sample_weight has shape {array.shape} and type {array.dtype} for {m} {what}s; pass one number per {what}"
        )
    array = array.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        name = f"{what} {bad[0]}" if bag_ids is None else bag_name(int(bad[0]), bag_ids)
        raise DataError(f"{name} has the sample weight {array[bad[0]]:g}; it must be a finite number from 0 up")
    extreme = np.flatnonzero((array > 0) & ~((array >= 1 / _LARGEST_WEIGHT) & (array <= _LARGEST_WEIGHT)))
    if len(extreme):
        name = f"{what} {extreme[0]}" if bag_ids is None else bag_name(int(extreme[0]), bag_ids)
        raise DataError(
            f"{name} has the sample weight {array[extreme[0]]:g}; a weight counts {what}s, and must be 0 or between "
            f"{1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}: divide all weights by their mean"
        )
    if not array.any():
        raise DataError(f"all sample weights are zero, so no {what} counts")
    return array


def warn_sets_only(method: str, stacklevel: int = 3) -> None:
    """Say that a method makes no use of weights; a `stacklevel` of 3 points at the caller of the caller's `fit`."""
    warnings.warn(
        f"{method} uses candidate sets only: every label with a positive weight is a candidate, whatever the weight",
        UserWarning,
        stacklevel=stacklevel,
    )
