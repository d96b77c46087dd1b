"""The check of a data set: what is wrong with its instances, candidates and classes, its sizes, and a verdict."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.arrays import is_table
from mipl.dataset import MIPLDataset
from mipl.datasets.registry import dataset_names
from mipl.errors import DataError, MIPLError
from mipl.io.border import Problem
from mipl.io.columns import as_options, listed_names, non_feature
from mipl.io.options import Columns
from mipl.io.raw import RawBags
from mipl.io.sources import expand, read_frame, read_joined, read_raw
from mipl.loading import check_source, load_with_ids, with_background

__all__ = ["Report", "check", "check_classes", "check_instances", "possible_labels"]

_SHOWN = 5
#: What may separate labels when it is not the separator that was asked for.
_SEPARATORS = (",", ";", "/", "|", "+", "&", " and ", "\t")
#: A class with fewer bags that may be of it teaches little.
_FEW = 2


def check_classes(raw: RawBags, columns: Columns, unlabelled: Sequence[Any] | None = None) -> Iterator[Problem]:
    """All problems of candidates, classes and labels."""
    if raw.candidates is None:
        if unlabelled is None:
            listed = listed_names(raw.column_names)
            named = as_options({"candidates": raw.likely.get("candidates")}, raw.likely)
            which = f"say which one it is with {named}"
            where = "give a table with a row for each of them, table=FILE (--table FILE)"
            yield Problem(
                "no candidates",
                "error",
                raw.where,
                f"there is no column 'candidates' (the columns are {listed})"
                if listed
                else "nothing says which labels are possible for the bags",
                f"{which if listed else where}; predict and explain need no candidates",
            )
        return
    sets = possible_labels(raw)
    empty = [i for i, labels in enumerate(sets) if not labels]
    if empty and unlabelled is None:
        bags = ", ".join(_place(raw, i) for i in empty[:_SHOWN])
        more = f" and {len(empty) - _SHOWN} more" if len(empty) > _SHOWN else ""
        yield Problem(
            "bag without candidates",
            "warning",
            raw.where,
            f"{len(empty)} of {len(sets)} bags {'have' if len(empty) > 1 else 'has'} no candidates, so that any class "
            f"is possible: {bags}{more}",
            "give each the labels that are possible, or leave the bag out",
        )
    counts = Counter(label for labels in sets for label in set(labels))
    names = list(counts)
    if len(names) < 2 and unlabelled is None:
        message = f"there is only one class: {names}" if names else "there is no class at all"
        yield Problem("one class", "error", raw.where, message, "there must be at least two to tell apart")
    joined = joined_names(names, columns.candidates_sep)
    if joined is None:
        yield from _perhaps_joined(raw, names, columns.candidates_sep)
    else:
        sep, found = joined
        split = [[part.strip() for label in labels for part in str(label).split(sep)] for labels in sets]
        # Names that were taken for one may be all that stands between a label and its class.
        lost = set(raw.labels or []) - {None} - set(names)
        yield _unsplit(raw, sep, found, "error" if lost & {part for parts in split for part in parts} else "warning")
        # What else is wrong is told of the classes as they are meant.
        sets, counts = split, Counter(label for labels in split for label in set(labels))
        names = list(counts)
    yield from _near_duplicates(raw, names, counts)
    yield from _labels(raw, sets, {*names, *(raw.classes or []), *(unlabelled or [])}, unlabelled is None)
    if unlabelled is not None:  # a model has its classes from elsewhere
        return
    yield from _inseparable(raw, sets, names)
    few = sorted((str(name) for name in names if counts[name] < _FEW), key=str)
    if few and len(names) >= 2:
        shown = ", ".join(map(repr, few[:_SHOWN])) + (f" and {len(few) - _SHOWN} more" if len(few) > _SHOWN else "")
        yield Problem(
            "rare class",
            "warning",
            raw.where,
            f"candidates of a single bag only: {shown}",
            "add bags, or merge classes",
        )
    if len(names) > 1 and sets and all(len(set(labels)) in (0, len(names)) for labels in sets):
        message = "every class is a candidate of every bag, so the candidates say nothing"
        yield Problem("nothing known", "error", raw.where, message, "leave out candidates that can be ruled out")


def possible_labels(raw: RawBags) -> list[list[Any]]:
    """The candidates of each bag, without those of weight zero."""
    entries = raw.candidates or []
    return [[k for k, w in e.items() if w] if isinstance(e, dict) else e for e in entries]


def joined_names(names: Iterable[Any], candidates_sep: str) -> tuple[str, list[str]] | None:
    """Class names that are several names with a separator other than `candidates_sep`, and that separator.

    >>> joined_names(["owl, wren", "wren", "jay"], "|")
    (',', ['owl, wren'])
    """
    text = {str(name) for name in names}
    for sep in _SEPARATORS:
        if sep == candidates_sep:
            continue
        joined = {name: [part.strip() for part in name.split(sep)] for name in text if sep in name}
        joined = {name: parts for name, parts in joined.items() if all(parts) and len(parts) > 1}
        parts_of = Counter(part for parts in joined.values() for part in set(parts))
        # A part that is a class elsewhere, or comes in several of these names, shows that they are lists.
        found = sorted(n for n, parts in joined.items() if any(p in text or parts_of[p] > 1 for p in parts))
        if found:
            return sep, found
    return None


def _perhaps_joined(raw: RawBags, names: list[Any], candidates_sep: str) -> Iterator[Problem]:
    """Single class names with a comma or semicolon in them, as in "Parus major, Turdus merula"."""
    for sep in (",", ";"):
        some = sorted(name for name in map(str, names) if all(map(str.strip, name.split(sep))) and sep in name)
        # Where most names have one, as in "Thrush, hermit", it belongs to them.
        if sep != candidates_sep and some and 2 * len(some) < len(names):
            yield _unsplit(raw, sep, some, "warning", "may be")


def _unsplit(raw: RawBags, sep: str, found: list[str], severity: str, looks: str = "look like") -> Problem:
    """Class names that are several names, with a separator that was not recognised."""
    shown = ", ".join(map(repr, found[:3])) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return Problem(
        "candidates not separated",
        severity,
        f"{raw.where}: {_bag_of(raw, found[0])}",
        f"{len(found)} class names {looks} several: {shown}"
        if len(found) > 1
        else f"{shown} {looks.replace('look like', 'looks like')} several classes",
        f"pass candidates_sep={sep!r} (--candidates-sep {sep!r}){' if so' if looks == 'may be' else ''}",
    )


def _near_duplicates(raw: RawBags, names: list[Any], counts: Counter[Any]) -> Iterator[Problem]:
    """Class names that differ in case, blanks or punctuation only."""
    by_plain: dict[str, list[str]] = {}
    # Two Unicode forms of one name are told already.
    for name in sorted({unicodedata.normalize("NFC", str(name)): str(name) for name in names}.values()):
        by_plain.setdefault(re.sub(r"[\W_]+", "", name).casefold() or name, []).append(name)
    for group in by_plain.values():
        if len(group) > 1:
            rare = min(group, key=lambda name: counts.get(name, 0))
            yield Problem(
                "near-duplicate classes",
                "warning",
                f"{raw.where}: {_bag_of(raw, rare)}",
                f"{' and '.join(map(repr, group))} are different classes, but look like one",
                "write them alike",
            )


def _labels(raw: RawBags, sets: list[list[Any]], classes: set[Any], closed: bool) -> Iterator[Problem]:
    """True labels that are not among the candidates of their bag, or, if all classes are candidates, of any bag."""
    pairs = list(zip(raw.labels or [], sets, strict=False))
    # Numbers beside names are the positions of the sorted classes, and a name that is split has its own problem.
    unknown = [i for i, (label, _) in enumerate(pairs) if closed and isinstance(label, str) and label not in classes]
    told = set(unknown)
    outside = [
        i
        for i, (label, labels) in enumerate(pairs)
        if label is not None and labels and label not in labels and i not in told
    ]
    for found, kind, severity, among, remedy in (
        (
            unknown,
            "label of no bag's candidates",
            "error",
            "the candidates of any bag",
            "correct the label, or add it to the candidates of its bag",
        ),
        (outside, "label outside the candidates", "warning", "", "add it to the candidates or correct the label"),
    ):
        if not found:
            continue
        i = found[0]
        others = len(found) - 1
        more = f"; it is the same in {others} more bag{'s' if others > 1 else ''}" if others else ""
        yield Problem(
            kind,
            severity,
            f"{raw.where}: {_place(raw, i)}",
            f"the label {pairs[i][0]!r} is not among {among or f'the candidates {list(sets[i])}'}{more}",
            remedy,
        )


def _inseparable(raw: RawBags, sets: list[list[Any]], names: list[Any]) -> Iterator[Problem]:
    """Classes that are candidates of exactly the same bags: no method can tell them apart."""
    members: dict[Any, list[int]] = {name: [] for name in names}
    for i, labels in enumerate(sets):
        for label in set(labels):
            members[label].append(i)
    together: dict[tuple[int, ...], list[Any]] = {}
    for name, bags in members.items():
        together.setdefault(tuple(bags), []).append(name)
    for shared, group in together.items():
        if len(group) > 1 and len(shared) > 1:
            shown = " and ".join(repr(name) for name in sorted(group, key=str)[:_SHOWN])
            yield Problem(
                "always together",
                "warning",
                raw.where,
                f"{shown} are candidates of the same {len(shared)} bags always, so nothing tells them apart",
                "add bags with only one of them, or merge them into one class",
            )


def _place(raw: RawBags, i: int) -> str:
    line = "" if raw.lines is None else f" (line {raw.lines[raw.offsets[i]]})"
    file = "" if raw.files is None else f" of {raw.files[i]}"
    return f"bag {raw.bag_ids[i].item()!r}{line}{file}"


def _bag_of(raw: RawBags, name: str) -> str:
    """The first bag with a candidate."""
    for i, labels in enumerate(raw.candidates or []):
        if name in map(str, labels):
            return _place(raw, i)
    return ""


#: How much larger the largest spread of a feature is than the middle one before we call it wildly scaled.
_WILD = 1e4
_COLUMNS = 50  #: with missing values, each with its count
_GUESSES = ("a running index", "an id by its name", "it has no name")


def check_instances(raw: RawBags, columns: Columns) -> Iterator[Problem]:
    """All problems of values, features and duplicates."""
    yield from _bad_cells(raw, columns)
    yield from _odd_columns(raw)
    yield from _odd_features(raw)
    image = len(raw.instance_shape or ()) > 1  # the margins of images are often the same
    if not image and not any(problem.kind == "no features" for problem in raw.problems):
        yield from _features_of_bags(raw)
    yield from _duplicates(raw)


def _bad_cells(raw: RawBags, columns: Columns) -> Iterator[Problem]:
    """One problem per kind, with counts per column; text that is no number is told column by column."""
    groups: dict[tuple[str, int | None], list[tuple[int, int, Problem]]] = {}
    for row, column in raw.bad_cells().tolist():
        problem = raw.cell_problem(row, column)
        key = (problem.kind, column if problem.kind == "not a number" else None)
        groups.setdefault(key, []).append((row, column, problem))
    for (kind, _), found in groups.items():
        first = found[0][2]
        counts = Counter(column for _, column, _ in found)
        mended = columns.missing is not None and kind != "value too large"
        if len(found) == 1:
            message = first.message
        elif len(counts) > 1:
            shown = [f"{n} in {raw.feature(column)}" for column, n in sorted(counts.items())]
            message = f"{first.message}, and so are others, {len(found)} in all: {_listed(shown, _COLUMNS)}"
        else:
            places = ", ".join(raw.place(row).partition(": ")[2] for row, _, _ in found[1:_SHOWN])
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            others = "is 1 more" if len(found) == 2 else f"are {len(found) - 1} more"
            message = f"{first.message}, and so {others} of {raw.feature(found[0][1])}: {places}{more}"
        how = columns.missing if isinstance(columns.missing, str) else "mean"
        remedy = f"missing={how!r} takes care of it" if mended else first.remedy
        yield Problem(kind, "note" if mended else "error", first.where, message, remedy)


def _odd_columns(raw: RawBags) -> Iterator[Problem]:
    """Columns that were left out, and features that look like an id or an index."""
    for name, why in raw.roles.left_out.items():
        if name in raw.roles.odd_cells:
            row, cell = raw.roles.odd_cells[name]
            yield Problem(
                "numbers as text",
                "warning",
                f"{raw.where}: {row}, column {name!r}",
                f"left out as text, but {cell!r} looks like {why.removeprefix('text: ')}",
                "write plain numbers, all of the file with the same decimal mark, or leave the column out with "
                f"ignore={name!r} (--ignore {name!r})",
            )
        elif why in _GUESSES:  # a text cannot be a feature, and what the user asked for needs no remark
            yield Problem(
                "column left out",
                "note",
                f"{raw.where}: column {name!r}",
                f"left out: {why}",
                "give it a name if it is a feature"
                if not name.strip()
                else f"pass features=[..., {name!r}] (--features) if it is one, ignore={name!r} (--ignore) if not",
            )
    for j, name in enumerate(raw.feature_names or ()):
        looks = non_feature(name, raw.values[:, j])
        if looks is not None:
            yield Problem(
                "looks like an id",
                "warning",
                f"{raw.where}: column {name!r}",
                f"is taken as a feature, but looks like {looks}",
                f"leave it out with ignore={name!r} (--ignore {name!r})",
            )


def _odd_features(raw: RawBags) -> Iterator[Problem]:
    """Features that say nothing, and features on wildly different scales."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.where(np.isfinite(raw.values), raw.values, np.nan).astype(np.float64)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(finite).any(axis=0))
    low, high = np.full(len(known), np.nan), np.full(len(known), np.nan)
    low[known], high[known] = np.nanmin(finite[:, known], axis=0), np.nanmax(finite[:, known], axis=0)
    constant = np.flatnonzero(low == high)
    image = len(raw.instance_shape or ()) > 1
    if len(constant) == len(known) and len(raw.values) > 1 and np.isfinite(finite).all():
        yield Problem(
            "nothing differs", "error", raw.where, "all instances are the same", "check what was taken as features"
        )
    elif len(constant) and not image and len(raw.values) > 1:
        names = _listed([raw.feature(int(j)) for j in constant])
        remedy = "" if raw.feature_names is None else _ignoring([raw.feature_names[int(j)] for j in constant])
        yield Problem("constant feature", "warning", raw.where, f"{names}: the same value everywhere", remedy)
    with np.errstate(over="ignore"):
        spread = (high - low)[known & (high > low)]
    if len(spread) > 1 and not image:
        middle = float(np.median(spread))
        wild = np.flatnonzero(known & (high > low) & ((high - low) > _WILD * middle))
        if len(wild):
            shown = [f"{raw.feature(int(j))} runs from {low[j]:.3g} to {high[j]:.3g}" for j in wild]
            message = f"{_listed(shown)}, while the middle feature has a range of {middle:.3g}"
            yield Problem(
                "wildly scaled",
                "warning",
                raw.where,
                message,
                "look for wrong values, rescale it, or take its logarithm",
            )


def _features_of_bags(raw: RawBags) -> Iterator[Problem]:
    """Features that do not tell the instances of a bag apart, or only by their number."""
    sizes = np.diff(raw.offsets)
    several = np.flatnonzero(sizes > 1)
    if len(several) < 2:
        return
    start, stop = raw.offsets[several[0]], raw.offsets[several[0] + 1]
    first = np.repeat(raw.offsets[:-1], sizes)
    inside = (raw.values[start:stop] == raw.values[start]).all(axis=0)
    for j in np.flatnonzero(inside):
        column = raw.values[:, j]
        inside[j] = (column == column[first]).all() and (column != column[0]).any()
    for kind, found, message, remedy in (
        ("counts within bags", raw.counting_features(), "the number of an instance in its bag", ""),
        (
            "constant within bags",
            inside,
            "the same value in all instances of a bag, for every bag",
            "right for what is known of the bag as a whole; if it is the bag's number, ",
        ),
    ):
        columns = np.flatnonzero(found).tolist()
        if columns:
            leave = "" if raw.feature_names is None else _ignoring([raw.feature_names[j] for j in columns])
            names = _listed([raw.feature(j) for j in columns])
            yield Problem(kind, "warning", raw.where, f"{names}: {message}", f"{remedy}{leave}" if leave else "")


def _duplicates(raw: RawBags) -> Iterator[Problem]:
    """Bags with the same instances, and instances that come twice in one bag."""
    rows = [row.tobytes() for row in np.ascontiguousarray(raw.values)]
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(raw.values).all(axis=1))  # nobody knows what missing values are
    seen: dict[Any, int] = {}
    same: list[tuple[int, int]] = []
    twice: list[tuple[int, int, int]] = []  # the bag, and the first two equal instances of it
    for i, (start, end) in enumerate(zip(raw.offsets[:-1].tolist(), raw.offsets[1:].tolist(), strict=True)):
        content = [rows[k] for k in range(start, end) if whole[k]]
        if len(set(content)) < len(content):
            first: dict[bytes, int] = {}
            again = next(k for k in range(start, end) if whole[k] and first.setdefault(rows[k], k) != k)
            twice.append((i, first[rows[again]], again))
        if len(content) < end - start:
            continue
        key = tuple(sorted(content))
        if key in seen:
            same.append((seen[key], i))
        else:
            seen[key] = i
    if same:
        one, other = same[0]
        more = f", and {len(same) - 1} more such pairs" if len(same) > 1 else ""
        message = f"bags {_id(raw, one)} and {_id(raw, other)} have the same instances{more}"
        remedy = "remove one of them, or keep them in one group so that they are not split"
        yield Problem("duplicated bag", "warning", raw.where, message, remedy)
    if twice:
        names = _listed([f"bag {_id(raw, i)}{_lines(raw, one, other)}" for i, one, other in twice])
        yield Problem("duplicated instance", "note", raw.where, f"{names}: an instance comes twice", "")


def _ignoring(names: list[str]) -> str:
    """How columns are left out; a comma in a name would be taken for two."""
    if len(names) == 1:
        return f"leave it out with ignore={names[0]!r} (--ignore {names[0]!r})"
    options = " ".join(f"--ignore {name!r}" for name in names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
    return f"leave them out with ignore=[{_listed([repr(name) for name in names])}] ({options})"


def _lines(raw: RawBags, first: int, second: int) -> str:
    return "" if raw.lines is None else f" (lines {raw.lines[first]} and {raw.lines[second]})"


def _id(raw: RawBags, i: int) -> str:
    return repr(raw.bag_ids[i].item())


def _listed(names: list[str], most: int = _SHOWN) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, repr=False)
class Report:
    """What `mipl.check` found.

    Parameters
    ----------
    problems : tuple of Problem
        Errors first, then warnings, then notes.
    summary : dict
        Numbers of bags, instances, features and classes, bags per class, and sizes of candidate sets, as far as the
        data could be read.
    remarks : tuple of str, default=()
        How the files were read: which columns were taken for what.
    """

    problems: tuple[Problem, ...]
    summary: dict[str, Any]
    remarks: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether nothing stops a fit."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def verdict(self) -> str:
        """One line for a person."""
        counts = {s: sum(p.severity == s for p in self.problems) for s in _ORDER}
        told = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for s, n in counts.items() if n) or "no problems"
        size = self.summary
        what = f"{size['bags']:,} bags, {size['instances']:,} instances, {size['classes']} classes: " if size else ""
        return f"{what}{'usable' if self.usable else 'not usable yet'} ({told})"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "usable": self.usable,
            "verdict": self.verdict,
            "problems": [problem.to_dict() for problem in self.problems],
            "summary": self.summary,
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([*(f"{p.severity}: {p}" for p in self.problems), self.verdict])


def check(source: Any, **options: Any) -> Report:
    """Look for everything that is wrong or odd in a data set; nothing is raised but for wrong options.

    Parameters
    ----------
    source : MIPLDataset, str, Path, sequence of these paths, or table
        A data set, or what `mipl.load` takes.
    **options
        Those of `mipl.load`: `bag`, `candidates`, `label`, `features`, `background`, ...

    Returns
    -------
    Report

    Examples
    --------
    >>> import mipl
    >>> report = mipl.check("digits")
    >>> report.usable, report.verdict
    (True, '150 bags, 1,125 instances, 5 classes: usable (no problems)')
    """
    unlabelled = options.pop("unlabelled", None)
    background = options.pop("background", None)
    columns = Columns(**{name: options.pop(name) for name in list(options) if name in Columns.__dataclass_fields__})
    try:
        raw = _raw(source, columns, options)
    except MIPLError as error:
        told = dict.fromkeys([str(error), *_unreadable_alone(source, columns)])
        return Report(tuple(Problem("unreadable", "error", "", text) for text in told), {})
    return check_raw(raw, columns, unlabelled, background)


def check_raw(
    raw: RawBags, columns: Columns, unlabelled: Sequence[Any] | None = None, background: Any = None
) -> Report:
    """Check bags as a file has them."""
    problems = [
        *raw.problems,
        *raw.oddities(),
        *check_instances(raw, columns),
        *check_classes(raw, columns, unlabelled),
    ]
    if not any(problem.severity == "error" for problem in problems):
        try:  # whatever else a data set refuses
            dataset = raw.load(columns.missing, unlabelled).dataset
            if background is not None:
                with_background(dataset, background)
        except DataError as error:
            problems.append(Problem("unusable", "error", "", str(error)))
    problems.sort(key=lambda problem: _ORDER[problem.severity])
    return Report(tuple(problems), _summary(raw), tuple(raw.remarks))


def _raw(source: Any, columns: Columns, options: dict[str, Any]) -> RawBags:
    if isinstance(source, MIPLDataset):
        return RawBags.from_dataset(source, source.name or "the data set")
    if is_table(source) and not options:
        return read_frame(source, columns)
    sources = [source] if isinstance(source, str | Path) else list(source)
    if len(sources) == 1 and str(sources[0]) in dataset_names():
        return RawBags.from_dataset(load_with_ids(sources, columns, **options).dataset, str(sources[0]))
    if options:
        raise DataError(f"files have no option {', '.join(map(repr, options))}; see mipl.load for those they have")
    for each in sources:
        check_source(each)
    return read_joined(expand(sources), columns)


def _unreadable_alone(source: Any, columns: Columns) -> list[str]:
    """What is wrong with each of several files that cannot be read, not with the first of them alone."""
    if isinstance(source, MIPLDataset) or is_table(source):
        return []
    try:
        files = expand([source] if isinstance(source, str | Path) else list(source))
    except MIPLError:
        return []
    errors = []
    for file in files if len(files) > 1 else []:
        try:
            read_raw(file, replace(columns, table=None))
        except MIPLError as error:
            errors.append(str(error))
    return errors


def _summary(raw: RawBags) -> dict[str, Any]:
    sets = possible_labels(raw)
    names = raw.classes or sorted({label for labels in sets for label in labels}, key=str)
    sizes = [len(set(labels)) for labels in sets]
    return {
        "bags": len(raw.bag_ids),
        "instances": len(raw.values),
        "features": raw.values.shape[1],
        "classes": len(names),
        "candidate_of": {str(name): sum(name in labels for labels in sets) for name in names},
        "candidate_sizes": {str(k): sizes.count(k) for k in sorted(set(sizes))},
    }
