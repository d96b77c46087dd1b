"""What can be wrong with candidate sets, class names and labels."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mipl.io.columns import Columns, as_options, listed_names
from mipl.io.problems import Problem
from mipl.io.raw import RawBags

__all__ = ["check_classes", "possible_labels"]

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
