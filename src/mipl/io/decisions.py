"""Decisions of a person about single bags: the small CSV that the page of a `Resolution` exports, and its way back.

Columns ``bag_id,decision``. A decision is the name of a class, or ``none of these`` where no candidate is right; an
empty one is no decision. A spreadsheet runs a cell that begins with ``= + - @`` as a formula, so such a cell has an
apostrophe before it, which reading takes off; so has one that is empty, begins with an apostrophe, or is a class that
is really called ``none of these``.
"""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import no_such_file
from mipl.io.tables import unescaped_cell
from mipl.io.text import as_utf8
from mipl.votes import SET_WEIGHT

__all__ = ["NONE_OF_THESE", "apply_decisions", "read_decisions"]

#: What stands in the file for a bag none of whose candidates is right.
NONE_OF_THESE = "none of these"
_COLUMNS = ("bag_id", "decision")
_SHOWN = 5


def read_decisions(path: str | Path) -> dict[str, str | None]:
    """Read a file of decisions.

    Parameters
    ----------
    path : str or Path
        A CSV file with the columns ``bag_id`` and ``decision``; commas, semicolons or tabs separate.

    Returns
    -------
    dict
        Bag id to the name of the class, None for "none of these"; both as text, whatever the data set has.

    Raises
    ------
    DataError
        The file is not such a table, or a bag is decided twice in different ways.
    """
    file = Path(path)
    if not file.is_file():
        raise no_such_file(file)
    text, _ = as_utf8(file.read_bytes(), str(file))  # a spreadsheet may have saved it in its own encoding
    lines = io.StringIO(text.decode(), newline="")
    try:
        header = lines.readline()
        separator = max(",;\t", key=header.count)
        columns = [cell.strip() for cell in next(csv.reader([header], delimiter=separator), [])]
        for name in _COLUMNS:
            if columns.count(name) != 1:
                found = "has no column" if name not in columns else "has more than one column"
                raise DataError(f"{file} {found} {name!r}; a file of decisions has {', '.join(_COLUMNS)}")
        rows = list(csv.DictReader(lines, columns, delimiter=separator))
    except csv.Error as error:
        raise DataError(f"{file} is not a CSV file ({error})") from error
    decisions: dict[str, str | None] = {}
    for row in rows:
        if not row["decision"]:
            continue
        bag = unescaped_cell(row["bag_id"] or "")
        decision = None if row["decision"] == NONE_OF_THESE else unescaped_cell(row["decision"])
        if decisions.setdefault(bag, decision) != decision:
            raise DataError(f"{file}: bag {bag!r} is decided twice, in different ways; keep one of the two rows")
    return decisions


def apply_decisions(dataset: MIPLDataset, decisions: Mapping[str, str | None]) -> MIPLDataset:
    """Take decisions as certain: a decided bag has that one candidate.

    Bags marked "none of these" are left out, as nothing that is known of their label holds. True labels that the data
    set has stay as they are, also where a decision contradicts them.

    Parameters
    ----------
    dataset : MIPLDataset
        m bags.
    decisions : mapping from str to str or None
        Bag id to class name or None, as `read_decisions` gives it. Ids and classes that are integers are matched by
        their digits. The class need not be among the candidates of the bag.

    Returns
    -------
    MIPLDataset
        Without the bags of decision None.

    Raises
    ------
    DataError
        A bag or class is not in the data set, or no bag is left.
    """
    row = {str(name): i for i, name in enumerate(dataset.bag_ids.tolist())}
    column = {str(name): c for c, name in enumerate(dataset.classes.tolist())}
    unknown = [bag for bag in decisions if bag not in row]
    if unknown:
        raise DataError(f"decisions about bags that are not in the data: {_listed(unknown)}; is it the right file?")
    labels = [(bag, label) for bag, label in decisions.items() if label is not None]
    strange = [f"{label!r} (bag {bag!r})" for bag, label in labels if label not in column]
    if strange:
        raise DataError(
            f"decisions for classes that are not in the data: {', '.join(strange[:_SHOWN])}{_more(strange)}; "
            f"the classes are {_listed(column)}"
        )
    candidates = dataset.candidates.copy()
    weights = None if dataset.candidate_weights is None else dataset.candidate_weights.copy()
    kept = np.ones(len(dataset), dtype=bool)
    for bag, label in decisions.items():
        if label is None:
            kept[row[bag]] = False
        else:
            candidates[row[bag]] = np.arange(len(column)) == column[label]
            if weights is not None:  # what was voted before does not count any more
                weights[row[bag]] = SET_WEIGHT * candidates[row[bag]]
    if not kept.any():
        raise DataError('every bag is marked "none of these"; there is nothing left to learn from')
    # A copy and not a new data set: that would refuse a true label which is no candidate any more.
    decided = copy.copy(dataset if kept.all() else dataset[kept])
    decided.candidates = candidates[kept]
    decided.candidates.flags.writeable = False
    if weights is not None:
        decided.candidate_weights = weights[kept]
        decided.candidate_weights.flags.writeable = False
    return decided


def _listed(names: Iterable[Any]) -> str:
    every = list(names)
    return ", ".join(map(repr, every[:_SHOWN])) + _more(every)


def _more(every: list[Any]) -> str:
    return f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
