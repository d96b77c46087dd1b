"""What a user writes for the candidates of one bag: a set of labels, votes or weights per label, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from mipl.errors import DataError
from mipl.visible_text import is_text

__all__ = ["SET_WEIGHT", "as_label", "is_missing", "join_votes", "read_entry", "split_vote"]

#: What each label of a plain set has where other bags have votes: no whole number, so it is nobody's vote.
SET_WEIGHT = 0.5
#: Labels of one bag: a set, labels with their weights, or None where nothing is known.
Entry = list[Any] | dict[Any, float] | None


def read_entry(bag: str, entry: Any, classes: Collection[Any] | None = None) -> Entry:
    """Read the candidates of one bag.

    In a string, labels are separated by ``|``, and a label may be followed by ``:`` and its weight. A class may itself
    be called ``"chr:1"``, so

    1. where the classes are known and every part is one of them, the string is a set;
    2. else, where every part is a name, a ``:`` and a number, these are labels with weights (the last ``:`` counts);
    3. else it is a set.

    Parameters
    ----------
    bag : str
        What an error calls the bag.
    entry : collection of labels, mapping from labels to weights, str, int, None or NaN
        The candidates; None and NaN say that nothing is known. A weight of None says that the label is not a candidate.
    classes : collection of labels, default=None
        The classes where they are known, for rule 1.

    Returns
    -------
    list, dict or None
        A set of labels, weights by label, or None where nothing is known.

    Examples
    --------
    >>> read_entry("bag 0", "owl|wren"), read_entry("bag 0", "owl:3|wren:1")
    (['owl', 'wren'], {'owl': 3.0, 'wren': 1.0})
    >>> read_entry("bag 0", "chr:1|chr:2", classes=["chr:1", "chr:2", "chr:3"])
    ['chr:1', 'chr:2']
    """
    if is_missing(entry):
        return None
    if isinstance(entry, str):
        return _read_text(bag, entry, classes)
    if isinstance(entry, Mapping):
        return {as_label(f"{bag}: the label", label): _weight(bag, label, w) for label, w in entry.items()}
    if isinstance(entry, float) and entry.is_integer():
        return [int(entry)]  # a column of integers becomes one of floats where entries are missing
    if isinstance(entry, int | np.integer):
        return [as_label(f"{bag}: the label", entry)]
    if isinstance(entry, Iterable):
        return [as_label(f"{bag}: the label", label) for label in entry]
    raise DataError(f"{bag}: cannot read a candidate set from {entry!r}; pass a list or set of labels")


def as_label(what: str, label: Any) -> int | str:
    """The label as a plain integer or string; `what` starts the error."""
    if isinstance(label, str):
        if not is_text(label):
            raise DataError(f"{what} {label!r} has half a character (a lone surrogate), which is no text; rename it")
        return str(label)
    if isinstance(label, bool | np.bool_) or not isinstance(label, int | np.integer):
        raise DataError(f"{what} {label!r} is neither an integer nor a string")
    if not -(2**63) <= int(label) < 2**63:
        raise DataError(f"{what} {label!r} is an integer of more than 64 bits; use a string")
    return int(label)


def split_vote(part: str) -> tuple[str, float] | None:
    """The name and the weight of ``"name:number"``, None for any other text.

    >>> split_vote("owl:3"), split_vote("a:b:0.5"), split_vote("owl:day")
    (('owl', 3.0), ('a:b', 0.5), None)
    """
    name, _, number = part.rpartition(":")
    if not name.strip() or not number.isascii() or "_" in number:
        return None
    try:
        return name.strip(), float(number)
    except ValueError:
        return None


def join_votes(labels: Iterable[str], weights: Iterable[float]) -> str:
    """Write ``"owl:3|wren:0.5"``; reading it gives exactly these weights.

    >>> join_votes(["owl", "wren"], [3.0, 0.1])
    'owl:3|wren:0.1'
    """
    parts = zip(labels, weights, strict=True)
    return "|".join(f"{label}:{float(weight)!r}".removesuffix(".0") for label, weight in parts)


def _read_text(bag: str, text: str, classes: Collection[Any] | None) -> Entry:
    parts = [part.strip() for part in text.split("|")] if text.strip() else []
    if "" in parts:
        raise DataError(f'{bag}: the candidate list {text!r} has an empty label; write "a|b"')
    votes = [vote for vote in map(split_vote, parts) if vote is not None]
    if not parts or len(votes) < len(parts) or (classes is not None and all(part in classes for part in parts)):
        return list(parts)
    weights = {label: _weight(bag, label, weight) for label, weight in votes}
    if len(weights) < len(votes):
        raise DataError(f"{bag}: {text!r} gives a label two weights; if '{parts[0]}' is a class, pass the classes")
    return weights


def _weight(bag: str, label: Any, weight: Any) -> float:
    if weight is None:
        return 0.0
    if isinstance(weight, bool | np.bool_) or not isinstance(weight, Real):
        raise DataError(f"{bag}: the weight {weight!r} of the candidate {label!r} is not a number")
    if not 0 <= float(weight) < np.inf:
        raise DataError(
            f"{bag}: the weight {float(weight):g} of the candidate {label!r} is not a finite number from 0 up; "
            "0 says that it is not a candidate"
        )
    return float(weight)


def is_missing(entry: Any) -> bool:
    """Whether a value is None, NaN, or what pandas calls missing, without importing pandas."""
    return entry is None or (isinstance(entry, float) and entry != entry) or type(entry).__name__ == "NAType"
