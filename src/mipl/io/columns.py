"""Which column of a table is what: as the user says, else by name and content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.cells import is_list, whole
from mipl.io.options import Columns

__all__ = [
    "KNOWN_COLUMNS",
    "Roles",
    "absent",
    "as_options",
    "by_reason",
    "find_roles",
    "has_role_name",
    "in_file",
    "likely_columns",
    "listed_names",
    "non_feature",
    "pick",
    "taken_names",
    "unknown_to_model",
]

#: Columns with a meaning of their own; all others may be features.
KNOWN_COLUMNS = ("bag_id", "candidates", "label", "instance_label", "group")
_ROLES = {"bag": "bag_id", "candidates": "candidates", "label": "label"}
#: Other spellings, compared without case, blanks and punctuation.
_SPELLINGS = {
    "bag": ("bagid", "bag", "bagname", "bagnumber"),
    "candidates": ("candidates", "candidate", "candidatelabels", "candidateset", "candidatelabelset"),
    "label": ("label", "truelabel", "baglabel"),
}
_INDEX_NAME = re.compile(r"(unnamed.*|index|indexlevel\d*|id|row|rowid|rowname|rownames|rownumber|nr|no)")
_ID_NAME = re.compile(r".*[_ .-]id|.*[a-z]I[dD]|id", re.DOTALL)
#: So many rows that run 0, 1, 2, ... are no coincidence.
_RUNNING_ROWS = 10


def in_file(columns: Columns, names: Sequence[str]) -> Columns:
    """What is said, for a file with these columns: what a model remembers of columns that are not there is not said.

    The column of the bags must be there, under that name or a usual one; of several features all or none.
    """
    lost: dict[str, Any] = {}
    usual_bag = any(has_role_name(name, "bag") for name in names)
    for option in columns.remembered:
        given = getattr(columns, option)
        if given is None:
            continue
        if option in ("features", "ignore"):
            listed = [given] if isinstance(given, str) else given
            parts = [part.strip() for name in listed for part in ([name] if name in names else name.split(","))]
            kept = [part for part in parts if part in names or any(fnmatchcase(name, part) for name in names)]
            if not kept or (option == "ignore" and len(kept) < len(parts)):
                lost[option] = kept or None
        elif option in (*_ROLES, "instance_id") and given not in names and (option != "bag" or usual_bag):
            lost[option] = None
    return replace(columns, **lost) if lost else columns


@dataclass(frozen=True)
class Roles:
    """What the columns of a table were taken for."""

    bag: str | None = None
    candidates: str | None = None
    label: str | None = None
    instance_id: str | None = None
    features: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  #: column -> why
    in_lists: tuple[int, ...] | None = None  #: the shape of an instance in the lists of the one column of `features`
    odd_cells: Mapping[str, tuple[str, str]] = field(default_factory=dict)  #: column of numbers as text -> row, cell

    @property
    def usual(self) -> bool:
        """Whether the columns have their usual names and none was left out, so that there is nothing to say."""
        named = {"bag": self.bag, "candidates": self.candidates, "label": self.label}
        own = all(name in (None, _ROLES[role]) for role, name in named.items())
        return own and self.instance_id is None and not self.left_out

    def remark(self) -> str:
        """One line that says what was taken and what was left out."""
        parts = [
            f"{what} {name!r}"
            for what, name in (
                ("bags by", self.bag),
                ("candidates", self.candidates),
                ("label", self.label),
                ("instances by", self.instance_id),
            )
            if name is not None
        ]
        if self.in_lists is not None:
            shape = " x ".join(map(str, self.in_lists))
            what = f"{shape} features" if len(self.in_lists) == 1 else f"instances of {shape}"
            parts.append(f"{what} in the lists {self.features[0]!r}")
        elif self.features:
            shown = ", ".join(map(repr, self.features[:4])) + (", ..." if len(self.features) > 4 else "")
            word = "feature" if len(self.features) == 1 else "features"
            parts.append(f"{len(self.features)} {word} {shown}")
        text = "; ".join(parts)
        if self.left_out:
            text += "; left out: " + by_reason(self.left_out)
        return text


def by_reason(left_out: Mapping[str, str]) -> str:
    """Columns that were left out, those of one reason together.

    >>> by_reason({"date": "text", "row": "a running index", "note": "text"})
    "'date', 'note' (text), 'row' (a running index)"
    """
    names: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names.setdefault(why, []).append(name)
    return ", ".join(f"{listed_names(some)} ({why})" for why, some in names.items())


def find_roles(where: str, names: Sequence[str], columns: Columns, exact: bool = False) -> dict[str, str | None]:
    """Find the bag, candidates, label and instance id columns by their names.

    Parameters
    ----------
    where : str
        What an error calls the file.
    names : sequence of str
        The columns of the table.
    columns : Columns
        What the user says; a name that is not there is an error.
    exact : bool, default=False
        Whether other spellings of the usual names do not count, as in files that mipl wrote.
    """
    columns = in_file(columns, names)
    found: dict[str, str | None] = {}
    for role, usual in _ROLES.items():
        given = getattr(columns, role)
        if given is not None:
            found[role] = pick(where, names, given, role)
        elif usual in names:
            found[role] = usual
        else:
            spelled = [] if exact else [n for n in names if has_role_name(n, role)]
            found[role] = spelled[0] if len(spelled) == 1 else None
    found["instance_id"] = (
        None if columns.instance_id is None else pick(where, names, columns.instance_id, "instance_id")
    )
    given_roles: dict[str, str] = {}
    for role in (*_ROLES, "instance_id"):
        name = found[role]
        if name is None:
            continue
        # bag="file", label="species", candidates="species": bags whose label is known, as in ordinary learning.
        if name in given_roles and {role, given_roles[name]} != {"candidates", "label"}:
            raise DataError(f"{where}: the column {name!r} cannot be both {given_roles[name]} and {role}")
        given_roles[name] = role
    return found


def has_role_name(name: str, role: str | None = None) -> bool:
    """Whether a name is a spelling of a column with a role of its own."""
    plain = _plain(name)
    return any(plain in spellings for r, spellings in _SPELLINGS.items() if role in (None, r))


def pick(where: str, names: Sequence[str], given: str, role: str) -> str:
    """The column that the user names; a name that is not there is an error with the nearest ones."""
    if given in names:
        return given
    raise DataError(
        f"{where} has no column {given!r}; {_suggestion(given, names)}its columns are {listed_names(names)}; "
        f"pass {role}=NAME (on the command line --{role.replace('_', '-')} NAME)"
    )


def absent(where: str, names: Sequence[str], *roles: str, likely: Mapping[str, str] | None = None) -> DataError:
    """The error for columns that were neither named nor found.

    Parameters
    ----------
    where : str
        What the error calls the file.
    names : sequence of str
        The columns of the table.
    *roles : str
        Those that are missing: ``"bag"``, ``"candidates"``.
    likely : mapping from str to str, default=None
        What `mipl.io.columns.likely_columns` suggests.
    """
    usual = " and no column ".join(repr(_ROLES[role]) for role in roles)
    likely = likely or {}
    meant = {role: likely.get(role) or _closest(_ROLES[role], names) for role in roles}
    told = " and ".join(repr(name) for name in meant.values() if name)
    unnamed = sum(not name.strip() or _plain(name).startswith("unnamed") for name in names)
    title = "; the first line must name the columns: remove a title above them" if 2 * unnamed > len(names) else ""
    return DataError(
        f"{where} has no column {usual}; {f'did you mean {told}? ' if told else ''}its columns are "
        f"{listed_names(names)}; say which it is with {as_options(meant, likely)}{title}"
    )


def as_options(names: Mapping[str, str | None], likely: Mapping[str, str]) -> str:
    """How columns are named in Python and on the command line; NAME stands for one that nobody can guess."""
    given = dict(names)
    if names.get("candidates") == likely.get("candidates") and "candidates_sep" in likely:
        given["candidates_sep"] = likely["candidates_sep"]
    python = ", ".join(f"{role}={name!r}" if name else f"{role}=NAME" for role, name in given.items())
    options = " ".join(
        f"--{role.replace('_', '-')} {name!r}" if name else f"--{role.replace('_', '-')} NAME"
        for role, name in given.items()
    )
    return f"{python} (on the command line {options})"


def taken_names(where: str, names: Sequence[str], patterns: str | Sequence[str], option: str) -> list[str]:
    """The columns that a user's names and patterns stand for, in the user's order."""
    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if pattern in names:
            some = [pattern]
        elif any(c in pattern for c in "*?[") and (match := [n for n in names if fnmatchcase(n, pattern)]):
            some = match
        elif "," in pattern:
            parts = [part.strip() for part in pattern.split(",")]
            some = taken_names(where, names, [part for part in parts if part], option)
        else:
            pick(where, names, pattern, option)
            some = []
        found += [name for name in some if name not in found]
    return found


def unknown_to_model(where: str, names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """The columns among `names` that a model has no use for, each with the reason; one that it lacks is an error."""
    have = set(names)
    missing = [name for name in wanted if name not in have]
    if missing:
        one = len(missing) == 1
        raise DataError(
            f"{where} has no {'column' if one else 'columns'} {listed_names(missing)}, which the model was fitted "
            "with; "
            f"{_suggestion(missing[0], [name for name in names if name not in set(wanted)])}"
            f"its columns are {listed_names(names)}"
        )
    known = set(wanted)
    return {name: "the model does not know it" for name in names if name not in known}


def non_feature(name: str, values: NDArray[np.floating[Any]]) -> str | None:
    """Why a numeric column (n,) is no feature, or None where it may be one.

    >>> non_feature("Unnamed: 0", np.arange(3.0))
    'a running index'
    >>> non_feature("recording_id", np.array([7.0, 7.0, 9.0]))
    'an id by its name'
    >>> non_feature("width", np.array([1.5, 2.5, 2.0]))
    """
    n = len(values)
    unnamed = not name.strip() or _plain(name).startswith("unnamed")
    indexed = unnamed or _INDEX_NAME.fullmatch(_plain(name)) is not None
    if n and (indexed or n >= _RUNNING_ROWS) and (values[0] in (0, 1)) and (np.diff(values) == 1).all():
        return "a running index"
    if _ID_NAME.fullmatch(name):
        return "an id by its name"
    if unnamed:
        return "it has no name"
    return None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _suggestion(given: str, names: Iterable[str]) -> str:
    close = _closest(given, names)
    return "" if close is None else f"did you mean {close!r}? "


def _closest(given: str, names: Iterable[str]) -> str | None:
    """The name that is nearest to the given one, None where none is near."""
    by_plain = {_plain(name): name for name in names}
    close = get_close_matches(_plain(given), by_plain, n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def listed_names(names: Sequence[str], most: int = 12) -> str:
    """The first names, and how many there are beyond them."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + rest


_GUESS_ROWS = 2000
_SEPARATORS = ("|", ",", ";", "/", "+")
#: Share of the cells that hold several labels, and how often a label comes on average, at least.
_SEVERAL, _AGAIN = 0.3, 2.0
_LONGEST_LABEL = 60


def likely_columns(table: pa.Table, roles: Mapping[str, str | None]) -> dict[str, str]:
    """Arguments of `mipl.load` that would name the bag and the candidates, as far as the first rows show them.

    The bag is a text, else a whole number, that is the same in rows that follow each other and comes back nowhere; of
    several, the one with most values. Candidates are lists of text, or texts that a separator cuts into parts that
    come again and again.

    Parameters
    ----------
    table : pyarrow.Table
        One row per instance or per bag.
    roles : mapping from str to str or None
        What is known already; only the bag and the candidates that are missing here are looked for.
    """
    head = table.slice(0, _GUESS_ROWS)
    taken = {name for name in roles.values() if name is not None}
    texts: dict[str, list[str]] = {}
    numbers: dict[str, list[float]] = {}
    found: dict[str, str] = {}
    for name in head.column_names:
        kind = head.schema.field(name).type
        if name in taken:
            continue
        if is_list(kind) and (pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)):
            found.setdefault("candidates", name)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            texts[name] = [(cell or "").strip() for cell in whole(head, name).to_pylist()]
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            cells = whole(head, name).to_pylist()
            if all(cell is not None and float(cell).is_integer() for cell in cells):
                numbers[name] = cells
    if roles.get("bag") is None:
        groups = {name: len(set(cells)) for name, cells in texts.items() if _in_runs(cells)}
        groups = groups or {name: len(set(cells)) for name, cells in numbers.items() if _in_runs(cells)}
        if groups:
            found["bag"] = max(groups, key=lambda name: groups[name])
    if roles.get("candidates") is None and "candidates" not in found:
        for name, cells in texts.items():
            sep = _separator_of(cells) if name != found.get("bag") else None
            if sep is not None:
                found["candidates"] = name
                if sep != "|":
                    found["candidates_sep"] = sep
                break
    return {
        role: found[role] for role in ("bag", "candidates", "candidates_sep") if role in found and not roles.get(role)
    }


def _in_runs(cells: Sequence[Any]) -> bool:
    """Whether equal cells follow each other, in more than one group, of which some have several."""
    distinct = set(cells)
    return "" not in distinct and 1 < len(distinct) < len(cells) and len(list(groupby(cells))) == len(distinct)


def _separator_of(cells: list[Any]) -> str | None:
    """What separates labels in these cells, None where they are no lists of labels."""
    filled = [cell for cell in cells if cell]
    for sep in _SEPARATORS:
        lists = [cell.split(sep) for cell in filled]
        parts = [part.strip() for each in lists for part in each]
        several = sum(len(each) > 1 for each in lists)
        if (
            several
            and several >= _SEVERAL * len(filled)
            and all(parts)
            and not all(part.replace(".", "").isdigit() for part in parts)
            and len(parts) >= _AGAIN * len(set(parts))
            and max(map(len, parts)) <= _LONGEST_LABEL
        ):
            return sep
    return None
