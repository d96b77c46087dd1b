"""Answers of persons about bags, counted: each label that a person names for a bag is one vote of that person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mipl.errors import DataError
from mipl.io.border import first_line
from mipl.io.columns import Columns, absent, has_role_name, pick
from mipl.io.labels import candidate_cell, label_cell, restore_numbers
from mipl.io.problems import Problem

__all__ = [
    "FILES",
    "Answer",
    "SideTable",
    "answers_table",
    "as_name",
    "bag_column",
    "find_column",
    "votes_of",
    "worker_column",
]

#: Names of columns, compared without case, blanks and punctuation.
_WORKERS = ("worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "labeler", "user", "userid")
_ANSWERS = ("choice", "label", "answer", "vote", "response", "annotation", "candidates", "class", "category")
#: Columns that name a file.
FILES = ("file", "filename", "image", "audio", "video", "url")
_ITEMS = ("task", "taskid", "item", "itemid", "question", "id")


class Answer(NamedTuple):
    """What one person said of one bag."""

    bag: str
    worker: str | None  #: None: nobody knows who it was
    labels: list[Any]


@dataclass
class SideTable:
    """What a file says of bags, by their names in it."""

    where: str
    column: str  #: the column, or the field of a task, that names the bag
    candidates: dict[str, Any]  #: a list of labels, or votes by label
    labels: dict[str, Any] | None = None  #: true labels, where the table has them
    remarks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def answers_table(where: str, header: Sequence[str], rows: Iterable[dict[str, Any]], columns: Columns) -> SideTable:
    """Votes from rows of which each is a person's answer; a cell may hold several labels.

    Parameters
    ----------
    where : str
        What an error calls the file.
    header : sequence of str
        The names of the columns.
    rows : iterable of dict
        One answer each.
    columns : Columns
        As in `read_side_table`.
    """
    bag = bag_column(where, header, columns)
    worker = worker_column(header)
    if columns.candidates is not None:
        choice: str | None = pick(where, header, columns.candidates, "candidates")
    else:
        choice = find_column([name for name in header if name not in (bag, worker)], _ANSWERS)
    if choice is None:
        raise absent(where, header, "candidates")
    answers = []
    for number, row in enumerate(rows, start=1):
        name = as_name(row.get(bag))
        if not name:
            raise DataError(f"{where}: answer {number} names no bag: its {bag!r} is empty")
        labels = _chosen(row.get(choice), columns.candidates_sep, f"{where}: bag {name!r}, answer {number}")
        answers.append(Answer(name, as_name(row.get(worker)) or None if worker else None, labels))
    return votes_of(where, bag, answers)


def votes_of(where: str, column: str, answers: Sequence[Answer]) -> SideTable:
    """Count the answers: one vote per person, bag and label; a bag that got no label has no candidates.

    >>> told = [Answer("a", "ann", ["owl"]), Answer("a", "bob", ["owl", "wren"]), Answer("a", "ann", ["owl"])]
    >>> votes_of("answers.csv", "bag_id", told).candidates
    {'a': {'owl': 2.0, 'wren': 1.0}}
    """
    votes: dict[str, dict[Any, float]] = {}
    told: set[tuple[Any, ...]] = set()
    for number, (bag, worker, labels) in enumerate(answers):
        of_bag = votes.setdefault(bag, {})
        for label in dict.fromkeys(labels):
            key = (bag, number if worker is None else worker, label)
            if key not in told:
                told.add(key)
                of_bag[label] = of_bag.get(label, 0.0) + 1.0
    turned, _ = restore_numbers(list(votes.values()), None)
    workers = len({worker for _, worker, _ in answers if worker is not None})
    by = f" of {workers:,} persons" if workers else ""
    n = sum(bool(labels) for _, _, labels in answers)
    remark = f"{where}: {n:,} answers{by} about {len(votes):,} bags, taken as votes; bags by {column!r}"
    return SideTable(where, column, dict(zip(votes, turned, strict=True)), remarks=[remark])


def bag_column(where: str, header: Sequence[str], columns: Columns) -> str:
    """The column that names the bag: as the user says, as usual, a column of files, or a number of the task."""
    if columns.bag is not None and columns.bag in header:
        return columns.bag
    usual = next((name for name in header if has_role_name(name, "bag")), None)
    found = usual or find_column(header, FILES) or find_column(header, _ITEMS)
    if found is None:
        raise absent(where, header, "bag")
    return found


def find_column(header: Sequence[str], spellings: Sequence[str]) -> str | None:
    """The column that has the first of the spellings that one has."""
    plain = {re.sub(r"[\W_]+", "", name).lower(): name for name in reversed(header)}
    return next((plain[s] for s in spellings if s in plain), None)


def worker_column(header: Sequence[str]) -> str | None:
    """The column that says whose answer a row is, None where there is none."""
    return find_column(header, _WORKERS)


def _chosen(cell: Any, sep: str, what: str) -> list[Any]:
    """The labels of one answer: a label, ``a|b``, a list, or Label Studio's ``{"choices": ["a", "b"]}``."""
    if isinstance(cell, str) and cell.lstrip().startswith('{"choices"'):
        try:
            cell = json.loads(cell)
        except ValueError as error:
            raise DataError(f"{what}: cannot read the choices {cell!r} ({first_line(error)})") from error
    if isinstance(cell, dict):
        cell = cell.get("choices", cell)
    if isinstance(cell, dict) or (isinstance(cell, list) and not all(isinstance(v, str | int) for v in cell)):
        raise DataError(f"{what}: {cell!r} is neither a label nor a list of labels")
    labels = candidate_cell(cell, sep, bag=what)
    if isinstance(labels, dict):
        raise DataError(f"{what}: {cell!r} has weights; an answer names labels, and answers are counted")
    return labels


def as_name(value: Any) -> str:
    """The name of a bag or a person as text; Label Studio may give a person as an object."""
    if isinstance(value, dict):
        value = value.get("id", value.get("email"))
    found = label_cell(value)
    return "" if found is None else str(found)
