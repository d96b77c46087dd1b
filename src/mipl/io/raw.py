"""Bags as a file has them, before they are a data set: missing values, conflicts and places included.

Every reader of tables ends here, so that all formats refuse the same things in the same words, and `mipl.check` can
list what `mipl.load` refuses one by one.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.candidates import parse_votes
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import Problem, border
from mipl.io.cells import map_labels, reads_as_number
from mipl.io.columns import Roles, absent
from mipl.odd_candidates import find_odd_candidates

__all__ = ["Loaded", "RawBags", "join"]

_LOG = logging.getLogger(__name__)
_LARGEST = float(np.finfo(np.float32).max)
#: From here on single precision does not hold every integer; this share of the values of a column may become others.
_EXACT, _COLLAPSED = 2**24, 0.01
_SHOWN = 5


class Loaded(NamedTuple):
    """A data set from a file, and what the data set itself does not hold."""

    dataset: MIPLDataset
    instance_ids: NDArray[Any] | None = None  #: (n,) the names of the instances, where a column has them
    remarks: tuple[str, ...] = ()  #: what a person should know about how the file was read
    has_labels: bool = False  #: whether there is a column of labels, be it empty
    means: Mapping[str, float] | None = None  #: what missing values were, or would have been, filled with

    def ids_of(self, part: MIPLDataset) -> NDArray[Any] | None:
        """The names of the instances of some of the bags, in their order there."""
        if self.instance_ids is None or part is self.dataset:
            return self.instance_ids
        position = {name: i for i, name in enumerate(self.dataset.bag_ids.tolist())}
        bags = np.array([position[name] for name in part.bag_ids.tolist()])
        return self.instance_ids[self.dataset.bags.rows_of(bags)]


@dataclass(kw_only=True)
class RawBags:
    """m bags with n instances of d features, not checked yet."""

    where: str  #: what messages call the file
    name: str | None  #: None: after the file
    values: NDArray[Any]  #: (n, d), bag after bag; NaN where missing
    offsets: NDArray[np.int64]  #: (m + 1,)
    bag_ids: NDArray[Any]  #: (m,)
    candidates: list[Any] | None  #: labels of each bag, in a dict with weights; None: the file has no candidates
    labels: list[Any] | None = None
    classes: list[Any] | None = None
    background: Any = None
    instance_labels: NDArray[np.int64] | None = None
    groups: NDArray[Any] | None = None
    instance_ids: NDArray[Any] | None = None
    instance_shape: Sequence[int] | None = None
    feature_names: Sequence[str] | None = None
    description: str = ""
    lines: NDArray[np.int64] | None = None  #: (n,) the line of each instance, counted from 1, where the file has lines
    texts: dict[tuple[int, int], str] = field(default_factory=dict)  #: (instance, feature) -> what is no number
    problems: list[Problem] = field(default_factory=list)  #: errors that the reader met
    roles: Roles = field(default_factory=Roles)
    remarks: list[str] = field(default_factory=list)
    column_names: Sequence[str] = ()  #: all columns of the table
    likely: dict[str, str] = field(default_factory=dict)  #: arguments that would name what was not found
    files: NDArray[Any] | None = None  #: (m,) the file of each bag, where there are several

    @classmethod
    def from_dataset(cls, dataset: MIPLDataset, where: str) -> RawBags:
        """The bags of a data set that was read already."""
        return cls(
            where=where,
            name=dataset.name,
            description=dataset.description,
            values=dataset.bags.instances,
            offsets=dataset.bags.offsets,
            bag_ids=dataset.bag_ids,
            candidates=_entries(dataset),
            background=dataset.background,
            labels=dataset.label_names(),
            classes=dataset.classes.tolist(),
            instance_labels=dataset.instance_labels,
            groups=dataset.groups,
            instance_shape=dataset.bags.instance_shape,
            feature_names=dataset.bags.feature_names,
        )

    # ---------------------------------------------------------------- places

    def bag_of(self, row: int) -> int:
        """The bag of instance `row`."""
        return int(np.searchsorted(self.offsets, row, side="right")) - 1

    def bag_place(self, row: int) -> str:
        """Where the bag of instance `row` is: by its id, and the line of the instance in a file of lines."""
        bag = self.bag_of(row)
        file = self.where if self.files is None else self.files[bag]
        line = "" if self.lines is None else f"line {self.lines[row]}, "
        return f"{file}: {line}bag {self.bag_ids[bag].item()!r}"

    def place(self, row: int, column: int | None = None) -> str:
        """Where an instance is: by line and column in a file of lines, by bag and instance anywhere."""
        what = "" if column is None else f", {self.feature(column)}"
        return f"{self.bag_place(row)}, instance {row - self.offsets[self.bag_of(row)]}{what}"

    def feature(self, column: int) -> str:
        """What a message calls a feature."""
        return f"feature {column}" if self.feature_names is None else f"column {self.feature_names[column]!r}"

    def bad_cells(self) -> NDArray[np.int64]:
        """Rows and columns (k, 2) of values that are missing, infinite or beyond float32."""
        values = self.values
        if values.dtype == np.float32:
            # A float64 sum of finite float32 numbers cannot overflow, so one pass without a temporary decides.
            if np.isfinite(np.sum(values, dtype=np.float64)):
                return np.empty((0, 2), dtype=np.int64)
            return np.argwhere(~np.isfinite(values))
        with np.errstate(over="ignore"):
            return np.argwhere(~np.isfinite(values.astype(np.float32, copy=False)))

    def cell_problem(self, row: int, column: int) -> Problem:
        """What is wrong with a value that `bad_cells` names."""
        value = self.values[row, column]
        where = self.place(row, column)
        if (row, column) in self.texts:
            text = self.texts[row, column]
            message, remedy = f"{text!r} is not a number", "correct it, or pass missing='drop'"
            for mark, other in ((".", "comma"), (",", "point")):
                if reads_as_number(text, mark):  # and so it would be if the file had this decimal mark
                    message += f" with a decimal {other}"
                    remedy = f"correct it, or pass decimal={mark!r} (--decimal {mark!r}) if all numbers are written so"
            return Problem("not a number", "error", where, message, remedy)
        if np.isnan(value):
            remedy = "fill it, or pass missing='drop' or missing='mean' (--missing drop|mean)"
            return Problem("missing value", "error", where, "the value is missing", remedy)
        if np.isinf(value):
            return Problem("infinite value", "error", where, f"the value is {value}", "replace it by a number")
        message = f"the value is {value:g}, beyond the {_LARGEST:.2g} that float32 holds"
        return Problem("value too large", "error", where, message, "rescale the column")

    # ---------------------------------------------------------------- what is probably meant otherwise

    def counting_features(self) -> NDArray[np.bool_]:
        """Which features (d,) run 0, 1, 2, ... or 1, 2, 3, ... in every bag; none where bags have one instance each."""
        starts, sizes = self.offsets[:-1], np.diff(self.offsets)
        first = self.values[starts]
        counts: NDArray[np.bool_] = ((first == 0).all(axis=0) | (first == 1).all(axis=0)) & ((sizes > 1).sum() > 1)
        place = np.arange(len(self.values)) - np.repeat(starts, sizes)
        for j in np.flatnonzero(counts):
            counts[j] = (self.values[:, j] - first[0, j] == place).all()
        return counts

    def oddities(self) -> Iterator[Problem]:
        """Warnings of candidates and numbers that can be read, but lose or change what they mean."""
        for odd in find_odd_candidates(self.candidates or [], named=self.classes is not None):
            some = [self.bag_place(int(self.offsets[i])) for i in odd.bags[:_SHOWN]]
            more = f" and {len(odd.bags) - _SHOWN} more" if len(odd.bags) > _SHOWN else ""
            told = f"; the same in {', '.join(map(self._short, some[1:]))}{more}" if some[1:] else ""
            yield Problem(odd.kind, "warning", some[0], f"{odd.message}{told}", odd.remedy)
        if self.values.dtype == np.float32 or not self.values.size:
            return
        with np.errstate(invalid="ignore"):
            largest = np.fmax(-np.fmin.reduce(self.values, axis=0), np.fmax.reduce(self.values, axis=0))
        for j in np.flatnonzero((largest >= _EXACT) & (largest <= _LARGEST)).tolist():
            values, rows = np.unique(self.values[:, j], return_index=True)
            values = values[np.isfinite(values)]
            same = np.flatnonzero((np.diff(values.astype(np.float32)) == 0) & (np.abs(values[1:]) >= _EXACT))
            if len(same) >= _COLLAPSED * len(values):
                one, other = sorted(rows[same[0] : same[0] + 2].tolist())
                place = self._short(self.place(other))
                message = (
                    f"{self.values[one, j]:.15g}, and {self.values[other, j]:.15g} in {place}, are one number "
                    f"in single precision, in which bags are held: of {len(values)} values {len(values) - len(same)} "
                    "are left"
                )
                remedy = "subtract a common start, or the start of each bag"
                yield Problem("digits lost", "warning", self.place(one, j), message, remedy)

    def _short(self, place: str) -> str:
        return place.removeprefix(f"{self.where}: ")

    # ---------------------------------------------------------------- to a data set

    def load(
        self,
        missing: str | Mapping[str, float] | None = None,
        unlabelled: Sequence[Any] | None = None,
        *,
        warn: bool = False,
    ) -> Loaded:
        """Make a data set, or raise the first problem.

        Parameters
        ----------
        missing : str or mapping from str to float, default=None
            ``"drop"``, ``"mean"``, the means, or None, see `mipl.io.columns.Columns`.
        unlabelled : sequence of labels, default=None
            The classes that a bag without candidates may have; None refuses such bags.
        warn : bool, default=False
            Whether to warn of `oddities`.
        """
        for problem in self.oddities() if warn else ():
            warnings.warn(f"probably not meant so: {problem}", UserWarning, stacklevel=4)
        remarks = list(self.remarks)
        with border(self.where):
            missing = self._means() if missing == "mean" else missing
            part = self._checked(missing, remarks)
            candidates, classes = part._candidates(unlabelled)
            dataset = part._dataset(candidates, classes)
        if classes is None and (told := _by_position(part.labels, dataset.classes)):
            remarks.append(f"{self.where}: {told}")
        for remark in remarks:
            _LOG.info(remark)
        means = missing if isinstance(missing, Mapping) else None
        return Loaded(dataset, part.instance_ids, tuple(remarks), part.labels is not None, means)

    def load_bags(self, missing: str | Mapping[str, float] | None = None) -> Bags:
        """The bags without their labels, or the first problem of their values."""
        with border(self.where):
            return self._checked(missing, [])._bags()

    def _bags(self) -> Bags:
        return Bags(self.values.astype(np.float32, copy=False), self.offsets, self.instance_shape, self.feature_names)

    def _dataset(self, candidates: Any, classes: Any) -> MIPLDataset:
        try:
            mask, weights, names = parse_votes(candidates, classes, bag_ids=self.bag_ids, warn=False)
            return MIPLDataset(
                bags=self._bags(),
                candidates=mask,
                candidate_weights=weights,
                labels=self.labels,
                classes=names,
                instance_labels=self.instance_labels,
                bag_ids=self.bag_ids,
                name=self.name or "",
                description=self.description,
                groups=self.groups,
                background=self.background,
            )
        except DataError as error:
            raise DataError(f"{self.where}: {error}") from error

    def _checked(self, missing: str | Mapping[str, float] | None, remarks: list[str]) -> RawBags:
        """These bags with missing values mended; what is wrong with the others is an error."""
        if self.problems:
            n = len(self.problems) - 1
            more = f" (and {n} more problem{'s' if n > 1 else ''}: 'mipl check' lists them)" if n else ""
            raise DataError(f"{self.problems[0]}{more}")
        part = self._mend(missing, remarks) if missing else self
        bad = part.bad_cells()
        if len(bad):
            more = f" (and {len(bad) - 1} more like it: 'mipl check' lists them)" if len(bad) > 1 else ""
            raise DataError(f"{part.cell_problem(*map(int, bad[0]))}{more}")
        return part

    def _candidates(self, unlabelled: Sequence[Any] | None) -> tuple[Any, Any]:
        """Candidate sets and classes; where nothing is known, every class is a candidate."""
        if self.candidates is None and unlabelled is None:
            if not self.column_names:
                raise DataError(f"{self.where}: there is no table of candidates; pass table=FILE (--table FILE)")
            told = absent(self.where, self.column_names, "candidates", likely=self.likely)
            raise DataError(f"{told}; only predict and explain take bags without candidates")
        if unlabelled is None:
            return [entry or None for entry in self.candidates or []], self.classes
        known = self.candidates or [[] for _ in self.bag_ids]
        labels = [v for v in self.labels or [] if v is not None]
        everything = list(dict.fromkeys([*(self.classes or []), *unlabelled, *labels, *(v for c in known for v in c)]))
        if len({type(v) for v in everything}) > 1:
            if all(known):
                return known, self.classes
            raise DataError(
                f"{self.where}: the labels of the file and the classes {list(unlabelled)[:5]} are not of one kind "
                "(integers and text); give both the same names"
            )
        return [c or everything for c in known], everything

    def _mend(self, missing: str | Mapping[str, float], remarks: list[str]) -> RawBags:
        bad = self.bad_cells()
        bad = bad[~(np.abs(self.values[bad[:, 0], bad[:, 1]]) > _LARGEST) | np.isinf(self.values[bad[:, 0], bad[:, 1]])]
        if not len(bad):
            return self
        if isinstance(missing, Mapping):
            return self._fill(bad, missing, remarks)
        return self._drop(np.unique(bad[:, 0]), remarks)

    def _names(self) -> list[str]:
        """What `_means` calls the features: by their names, else by their numbers."""
        return [str(name) for name in self.feature_names or range(self.values.shape[1])]

    def _means(self) -> dict[str, float]:
        """The mean of the finite values of each feature; one without any is left out."""
        known = np.isfinite(self.values)
        sums = np.where(known, self.values, 0).sum(axis=0, dtype=np.float64)
        counts = known.sum(axis=0)
        return {n: float(s / k) for n, s, k in zip(self._names(), sums, counts, strict=True) if k}

    def _fill(self, bad: NDArray[np.int64], means: Mapping[str, float], remarks: list[str]) -> RawBags:
        values, names = self.values.astype(np.float64), self._names()
        for column in np.unique(bad[:, 1]).tolist():
            if names[column] not in means:
                told = f"{self.feature(column)} has missing values and no mean to fill in"
                raise DataError(f"{self.where}: {told}; leave it out with ignore (--ignore)")
            values[bad[bad[:, 1] == column, 0], column] = means[names[column]]
        remarks.append(f"{self.where}: {len(bad)} missing values filled with the mean of their column")
        return _replaced(self, values=values, texts={})

    def _drop(self, rows: NDArray[np.int64], remarks: list[str]) -> RawBags:
        keep = np.ones(len(self.values), dtype=bool)
        keep[rows] = False
        sizes = np.add.reduceat(keep, self.offsets[:-1])
        stay = sizes > 0
        if not stay.any():
            raise DataError(f"{self.where}: every instance has a missing value; pass missing='mean' or ignore a column")
        remarks.append(
            f"{self.where}: {len(rows)} instances with missing values left out"
            + (f", with them the bags {self.bag_ids[~stay].tolist()[:10]}" if not stay.all() else "")
        )
        return _replaced(
            self,
            values=self.values[keep],
            offsets=np.concatenate([[0], np.cumsum(sizes[stay])]),
            bag_ids=self.bag_ids[stay],
            candidates=_selected(self.candidates, stay),
            labels=_selected(self.labels, stay),
            instance_labels=None if self.instance_labels is None else self.instance_labels[keep],
            groups=None if self.groups is None else self.groups[stay],
            instance_ids=None if self.instance_ids is None else self.instance_ids[keep],
            lines=None if self.lines is None else self.lines[keep],
            texts={},
        )


def _entries(dataset: MIPLDataset) -> list[Any]:
    """The candidates of each bag, with weights where there are any."""
    sets = dataset.candidate_sets()
    if dataset.candidate_weights is None:
        return sets
    rows = zip(sets, dataset.candidates, dataset.candidate_weights, strict=True)
    return [dict(zip(labels, weights[row].tolist(), strict=True)) for labels, row, weights in rows]


def _selected(values: list[Any] | None, mask: NDArray[np.bool_]) -> list[Any] | None:
    return None if values is None else [value for value, kept in zip(values, mask, strict=True) if kept]


def _replaced(raw: RawBags, **changes: Any) -> RawBags:
    return RawBags(**{**vars(raw), **changes})


def _by_position(labels: Sequence[Any] | None, classes: NDArray[Any]) -> str:
    """What to say where labels are numbers and classes are names in the order of the alphabet; nothing else."""
    if classes.dtype.kind != "U" or not any(isinstance(v, int | np.integer) and v >= 0 for v in labels or []):
        return ""
    shown = ", ".join(f"{c} for {name!r}" for c, name in enumerate(classes.tolist()[:3]))
    more = ", ..." if len(classes) > 3 else ""
    return f"the labels are numbers, and are taken for the positions of the sorted classes: {shown}{more}"


def join(files: Sequence[str], parts: Sequence[RawBags]) -> RawBags:
    """Put bags of several files one after the other.

    Parameters
    ----------
    files : sequence of str
        What messages call the files.
    parts : sequence of RawBags
        The bags of each file. Feature names must be the same, in any order, or absent everywhere.
    """
    first = parts[0]
    as_text = len({type(v) for part in parts for s in part.candidates or [] for v in s}) > 1  # "1|2", and "1|x"
    labelled = any(part.candidates is not None for part in parts)
    told = any(part.labels is not None for part in parts)
    starts = np.cumsum([0] + [len(part.values) for part in parts])
    remarks = [*first.remarks[:1], f"{len(parts)} files, {sum(len(part.bag_ids) for part in parts):,} bags"]
    return RawBags(
        where=f"{files[0]} and {len(files) - 1} more",
        name=first.name,
        description=first.description,
        values=np.concatenate([_matched(files, parts, i) for i in range(len(parts))]),
        offsets=np.concatenate([[0], *(part.offsets[1:] + s for part, s in zip(parts, starts, strict=False))]),
        bag_ids=_ids(files, parts),
        candidates=_strings([s for p in parts for s in p.candidates or [[]] * len(p.bag_ids)], as_text)
        if labelled
        else None,
        labels=[_text(v, as_text) for p in parts for v in p.labels or [None] * len(p.bag_ids)] if told else None,
        classes=_classes(parts, as_text),
        background=_text(next((p.background for p in parts if p.background is not None), None), as_text),
        instance_labels=_instance_labels(parts, as_text),
        groups=_all([part.groups for part in parts]),
        instance_ids=_all([part.instance_ids for part in parts]),
        instance_shape=first.instance_shape,
        feature_names=first.feature_names,
        lines=_all([part.lines for part in parts]),
        texts={(i + int(s), j): t for p, s in zip(parts, starts, strict=False) for (i, j), t in p.texts.items()},
        problems=[problem for part in parts for problem in part.problems],
        roles=first.roles,
        remarks=remarks + [remark for part in parts for remark in part.remarks[1:]],
        column_names=first.column_names,
        files=np.repeat(np.array(files), [len(part.bag_ids) for part in parts]),
    )


def _matched(files: Sequence[str], parts: Sequence[RawBags], i: int) -> NDArray[Any]:
    """The values of part i with their columns in the order of the first part's."""
    first, part = parts[0], parts[i]
    if first.feature_names is None or part.feature_names is None:
        one_named = (first.feature_names is None) != (part.feature_names is None)
        if one_named or first.values.shape[1] != part.values.shape[1]:
            raise DataError(
                f"{files[i]} has {part.values.shape[1]} features, {files[0]} has {first.values.shape[1]}, and not both "
                "have names for them; all files must have the same features"
            )
        return part.values
    wanted, given = list(first.feature_names), list(part.feature_names)
    if set(wanted) != set(given):
        lost = [name for name in wanted if name not in given] or [name for name in given if name not in wanted]
        raise DataError(f"{files[0]} and {files[i]} do not have the same features: {lost[0]!r} is in only one of them")
    return part.values if wanted == given else part.values[:, [given.index(name) for name in wanted]]


def _ids(files: Sequence[str], parts: Sequence[RawBags]) -> NDArray[Any]:
    owner: dict[Any, str] = {}
    for file, part in zip(files, parts, strict=True):
        for each in part.bag_ids.tolist():
            if str(each) in owner:
                raise DataError(
                    f"the bag {each!r} is in both {owner[str(each)]} and {file}; put the rows of a bag into one file, "
                    "and give bags of different files different ids"
                )
            owner[str(each)] = file
    kinds = {part.bag_ids.dtype.kind for part in parts}
    return np.concatenate([part.bag_ids.astype(str) if len(kinds) > 1 else part.bag_ids for part in parts])


def _classes(parts: Sequence[RawBags], as_text: bool) -> list[Any] | None:
    """The classes of all parts, where one names them; in the first part's order if they are the same."""
    if all(part.classes is None for part in parts):
        return None
    everything = dict.fromkeys(_text(c, as_text) for part in parts for c in part.classes or [])
    for part in parts:
        everything |= dict.fromkeys(_text(v, as_text) for s in part.candidates or [] for v in s)
    names = list(everything)
    return names if parts[0].classes is not None and len(names) == len(parts[0].classes) else sorted(names)


def _instance_labels(parts: Sequence[RawBags], as_text: bool) -> NDArray[np.int64] | None:
    """Instance labels are indices of a part's own classes; they are kept where all parts have the same classes."""
    own = [part.classes or sorted({v for s in part.candidates or [] for v in s}) for part in parts]
    if any(part.instance_labels is None for part in parts) or any(classes != own[0] for classes in own):
        return None
    return _all([part.instance_labels for part in parts])


def _all(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All arrays in one, or None where one is missing."""
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    kinds = {array.dtype.kind for array in known}
    return np.concatenate([array.astype(str) if len(kinds) > 1 else array for array in known])


def _strings(entries: list[Any], as_text: bool) -> list[Any]:
    return [map_labels(entry, lambda label: _text(label, as_text)) for entry in entries]


def _text(value: Any, as_text: bool) -> Any:
    return str(value) if as_text and value is not None else value
