"""What in candidate sets can be read, but is probably meant otherwise."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mipl.votes import split_vote

__all__ = ["OddCandidates", "find_odd_candidates"]

#: What programs write where a value is missing.
_MISSING = {"NaN", "nan", "None", "NULL", "null", "NA", "N/A", "#N/A", "<NA>", "NaT"}


class OddCandidates(NamedTuple):
    """One oddity: a short name, the bags in which it is, what it is, and what mends it."""

    kind: str
    bags: list[int]
    message: str
    remedy: str


def find_odd_candidates(entries: Sequence[Any], named: bool) -> Iterator[OddCandidates]:
    """Look for masks that are read as labels, forgotten votes, missing values and one name in two Unicode forms.

    Parameters
    ----------
    entries : sequence of m lists of labels, mappings from labels to weights, or None
        The candidates of each bag.
    named : bool
        Whether the classes are given: then a name such as ``"owl:2"`` or a label 0 is meant.

    Examples
    --------
    >>> [odd.message for odd in find_odd_candidates([["owl:2", "wren"], ["owl"]], named=False)]
    ["'owl:2' has a vote and 'wren' has none, so that both are names"]
    """
    names = {label for entry in entries for label in entry or () if isinstance(label, str)}
    if not named and _like_a_mask(entries):
        yield OddCandidates(
            "candidates like a mask",
            list(range(len(entries))),
            "the candidates are lists of 0 and 1, which are read as the labels 0 and 1",
            "for a mask of the classes pass numpy.array(candidates), or name the labels",
        )
    votes = {} if named else {name: vote for name in names if (vote := split_vote(name))}
    half = [i for i, e in enumerate(entries) if isinstance(e, list) and 0 < sum(name in votes for name in e) < len(e)]
    if half:
        with_vote = next(name for name in entries[half[0]] if name in votes)
        without = next(name for name in entries[half[0]] if name not in votes)
        yield OddCandidates(
            "vote forgotten",
            half,
            f"{with_vote!r} has a vote and {without!r} has none, so that both are names",
            f"give every candidate of a bag a vote, or none: '{with_vote}|{without}:1'",
        )
    for name in sorted(names & _MISSING):
        yield OddCandidates(
            "missing value as a class",
            _with(entries, {name}),
            f"the class {name!r} looks like a missing value",
            "leave the candidates empty (None) where nothing is known, and take it out of lists",
        )
    forms: dict[str, list[str]] = {}
    for name in sorted(names):
        forms.setdefault(unicodedata.normalize("NFC", name), []).append(name)
    for same in forms.values():
        if len(same) > 1:
            rare = min(same, key=lambda name: len(_with(entries, {name})))
            yield OddCandidates(
                "two Unicode forms",
                _with(entries, {rare}),
                f"{' and '.join(map(ascii, same))} are different classes, but one name in two Unicode forms",
                "write them alike, for example with unicodedata.normalize('NFC', name)",
            )


def _like_a_mask(entries: Sequence[Any]) -> bool:
    """Whether all entries are lists of zeros and ones of one length, and not all just both labels of two."""
    if not entries or not all(isinstance(e, list) and len(e) == len(entries[0]) > 1 for e in entries):
        return False
    return all(label in (0, 1) for e in entries for label in e) and any(e != [0, 1] for e in entries)


def _with(entries: Sequence[Any], names: set[str]) -> list[int]:
    return [i for i, entry in enumerate(entries) if not names.isdisjoint(entry or ())]
