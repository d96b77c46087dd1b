"""What can be wrong with instances and their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.io.columns import Columns, non_feature
from mipl.io.problems import Problem
from mipl.io.raw import RawBags

__all__ = ["check_instances"]

#: How much larger the largest spread of a feature is than the middle one before we call it wildly scaled.
_WILD = 1e4
_SHOWN = 5
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
