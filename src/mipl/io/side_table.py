"""Candidates that lie apart from the instances, joined by the bag: a table, votes of a crowd, a Label Studio export.

A *side table* has one row per bag with its candidates, or one row per answer of a person (a column such as ``worker``
or ``annotator`` tells the two apart), or it is an export of Label Studio (``.json``). Each label that a person names
for a bag is one vote of that person.

The full export of Label Studio is a list of tasks, each with its ``data`` and its ``annotations``; the votes are in
results of type ``choices``. Annotations that were skipped (``was_cancelled``) do not count, nor do predictions of
models. The short export (JSON-MIN, and CSV) has one row per annotation, with the choice under the name of the control.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from mipl.errors import DataError
from mipl.io.border import Problem, border, first_line, no_such_file
from mipl.io.cells import candidate_cell, candidates_or_problem, label_cell, restore_numbers
from mipl.io.columns import absent, find_roles, has_role_name, in_file, pick
from mipl.io.excel import read_sheet
from mipl.io.options import Columns
from mipl.io.parquet import open_parquet
from mipl.io.raw import RawBags
from mipl.io.text import read_rows

__all__ = [
    "FILES",
    "Answer",
    "SideTable",
    "answers_table",
    "as_name",
    "attach",
    "bag_column",
    "find_column",
    "read_export",
    "read_side_table",
    "votes_of",
    "worker_column",
]

#: What Label Studio puts before the name of an uploaded file.
_UPLOAD = re.compile(r"^[0-9a-f]{8}-")


def read_side_table(path: Path, columns: Columns, bag_ids: Sequence[Any] = ()) -> SideTable:
    """Read candidates by bag.

    Parameters
    ----------
    path : Path
        A table with one row per bag or one row per answer, or an export of Label Studio .json.
    columns : Columns
        What the user says: `bag` is the column, or the field of a task's data, that names the bag; `candidates` the
        column of labels, or the name of the control in Label Studio's labelling interface.
    bag_ids : sequence, default=()
        The bags, where they are known: the column that names them is then found by what is in it.
    """
    if not path.is_file():
        raise no_such_file(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not JSON ({first_line(error)})") from error
        return read_export(content, str(path), columns)
    header, rows = _rows(path, suffix, columns)
    columns = in_file(columns, header)
    if worker_column(header) is not None:
        return answers_table(str(path), header, rows, columns)
    return _one_row_per_bag(str(path), header, rows, columns, bag_ids)


def _rows(path: Path, suffix: str, columns: Columns) -> tuple[list[str], list[dict[str, Any]]]:
    """The column names and the rows of a table, cells of text as text."""
    if suffix in (".csv", ".tsv", ".txt"):
        return read_rows(path.read_bytes(), str(path), columns)
    if suffix == ".xlsx":
        table = read_sheet(path.read_bytes(), str(path)).table
    elif suffix in (".parquet", ".pq"):
        with border(str(path), "a Parquet file"):
            table = open_parquet(path).read()
    else:
        known = ".csv, .tsv, .xlsx, .parquet or, of Label Studio, .json"
        raise DataError(f"{path}: candidates by bag are read from {known}")
    return table.column_names, table.to_pylist()


def _one_row_per_bag(
    where: str, header: list[str], rows: list[dict[str, Any]], columns: Columns, bag_ids: Sequence[Any]
) -> SideTable:
    named = columns.bag in header
    roles = find_roles(where, header, columns if named else replace(columns, bag=None))
    bag = roles["bag"] or find_column(header, FILES) or _naming_column(header, rows, bag_ids)
    others = [name for name in header if name not in (bag, roles["label"])]
    candidates = roles["candidates"] or (others[0] if bag is not None and len(others) == 1 else None)
    if bag is None or candidates is None:
        missing = [role for role, name in (("bag", bag), ("candidates", candidates)) if name is None]
        raise absent(where, header, *missing)
    sets: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    problems: list[Problem] = []
    for row in rows:
        name = as_name(row.get(bag))
        if not name:
            continue
        if name in sets:
            raise DataError(
                f"{where}: the bag {name!r} has two rows; where each row is a person's answer, name the column of "
                "persons 'worker'"
            )
        place = f"{where}: bag {name!r}"
        sets[name] = candidates_or_problem(row.get(candidates), columns.candidates_sep, True, place, None, problems)
        labels[name] = label_cell(row.get(roles["label"])) if roles["label"] else None
    turned, named_labels = restore_numbers(list(sets.values()), list(labels.values()))
    return SideTable(
        where,
        bag,
        dict(zip(sets, turned, strict=True)),
        dict(zip(labels, named_labels or [], strict=True)) if roles["label"] else None,
        []
        if {bag, candidates} == {"bag_id", "candidates"}
        else [f"{where}: bags by {bag!r}; candidates {candidates!r}"],
        problems,
    )


def _naming_column(header: list[str], rows: list[dict[str, Any]], bag_ids: Sequence[Any]) -> str | None:
    """The first column of which most cells name a bag."""
    bags = {short for each in bag_ids for short in _short_names(str(each))}
    for name in header:
        cells = [_short_names(as_name(row.get(name))) for row in rows]
        if 2 * sum(not bags.isdisjoint(cell) for cell in cells) > len(cells):
            return name
    return None


def attach(raw: RawBags, side: SideTable) -> None:
    """Give bags the candidates of a side table, in place; bags that it does not name keep nothing.

    A bag is found by its id; else by the name of a file, with or without its folder, its suffix and what Label Studio
    puts before the name of an upload.
    """
    exact = dict(side.candidates)
    by_file: dict[str, list[str]] = {}
    for name in exact:
        for short in _short_names(name):
            by_file.setdefault(short, []).append(name)
    used: set[str] = set()
    found: list[str | None] = []
    for each in raw.bag_ids.tolist():
        name = str(each)
        matches = [name] if name in exact else [n for s in _short_names(name) for n in by_file.get(s, [])]
        if len(set(matches)) > 1:
            raise DataError(f"{side.where}: {matches[0]!r} and {matches[1]!r} both look like the bag {each!r}")
        found.append(matches[0] if matches else None)
        used.update(matches)
    if not used:
        raise DataError(
            f"{side.where}: no {side.column!r} names a bag of {raw.where}: they are called {next(iter(exact), '')!r}, "
            f"..., the bags {raw.bag_ids[0].item()!r}, ...; say which column or field does with bag=NAME (--bag NAME)"
        )
    raw.candidates = [[] if name is None else side.candidates[name] for name in found]
    if side.labels is not None:
        raw.labels = [None if name is None else side.labels[name] for name in found]
    left = [name for name in exact if name not in used]
    silent = [each for each, name in zip(raw.bag_ids.tolist(), found, strict=True) if name is None]
    raw.remarks += side.remarks
    raw.problems += side.problems
    if left:
        raw.remarks.append(f"{side.where}: {len(left)} rows name no bag, for example {left[0]!r}")
    if silent:
        others = "" if len(silent) == 1 else f" and {len(silent) - 1:,} more"
        raw.remarks.append(f"{side.where} has no row for the bag {silent[0]!r}{others}")


def _short_names(name: str) -> list[str]:
    """The name of a file without its folder and the mark of an upload; the same without its suffix."""
    last = _UPLOAD.sub("", PurePosixPath(name.replace("\\", "/")).name)
    stem = PurePosixPath(last).stem
    return list(dict.fromkeys([last, stem]))


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


def read_export(content: Any, where: str, columns: Columns) -> SideTable:
    """Read the content of an export.

    Parameters
    ----------
    content : list of dict
        What the JSON file holds.
    where : str
        What an error calls the file.
    columns : Columns
        `bag` is the field of a task's data that names the bag: by default ``bag_id``, else a file (``image``,
        ``audio``, ...), else the task's own ``id``. `candidates` is the name of the control; it is needed where there
        are several.
    """
    if not isinstance(content, list) or not content:
        raise DataError(f"{where} is no export of Label Studio: it must be a list of tasks")
    for number, task in enumerate(content, start=1):
        if not isinstance(task, dict):
            raise DataError(f"{where}: task {number} is not a JSON object")
    if not any("annotations" in task for task in content):
        header = list(dict.fromkeys(name for row in content for name in row))
        return answers_table(where, header, content, columns)
    fields = [{"id": task.get("id"), **_data(task, where)} for task in content]
    shared = [name for name in fields[0] if all(each.get(name) is not None for each in fields)]
    bag = bag_column(where, shared, columns)
    answers: list[Answer] = []
    for task, names in zip(content, fields, strict=True):
        answers += _answers(task, str(names[bag]), where, columns.candidates)
    _check_one_control(content, where, columns)
    return votes_of(where, bag, answers)


def _data(task: dict[str, Any], where: str) -> dict[str, Any]:
    data = task.get("data", {})
    if not isinstance(data, dict):
        raise DataError(f"{where}: the data of task {task.get('id')!r} are not a JSON object")
    return data


def _answers(task: dict[str, Any], bag: str, where: str, control: str | None) -> list[Answer]:
    """What each annotator chose for one task."""
    what = f"{where}: task {task.get('id')!r} (bag {bag!r})"
    annotations = task.get("annotations", [])
    if not isinstance(annotations, list):
        raise DataError(f"{what}: its annotations are not a list")
    answers = []
    for annotation in annotations:
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result", []), list):
            raise DataError(f"{what}: an annotation is not an object with a list of results")
        if annotation.get("was_cancelled"):
            continue
        labels: list[str] = []
        for result in annotation.get("result", []):
            labels += _choices(result, what, control)
        answers.append(Answer(bag, _annotator(annotation), labels))
    return answers


def _choices(result: Any, what: str, control: str | None) -> list[str]:
    if not isinstance(result, dict):
        raise DataError(f"{what}: a result is not a JSON object")
    if result.get("type") != "choices" or control not in (None, result.get("from_name")):
        return []
    value = result.get("value")
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise DataError(f"{what}: a result of type 'choices' has no list of choices but {value!r}")
    return choices


def _annotator(annotation: dict[str, Any]) -> str | None:
    """Who made an annotation: a number, or an object with a number and an address."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        by = by.get("id", by.get("email"))
    return None if by is None else str(by)


def _check_one_control(content: list[dict[str, Any]], where: str, columns: Columns) -> None:
    """Choices of several controls answer different questions; the user must say which one names the class."""
    results = (
        result
        for task in content
        for annotation in task.get("annotations", [])
        for result in annotation.get("result", [])
        if result.get("type") == "choices"
    )
    controls = sorted({str(result.get("from_name")) for result in results})
    if not controls:
        raise DataError(f"{where} has no result of type 'choices'; only classifications can be votes")
    if columns.candidates is None and len(controls) > 1:
        raise DataError(
            f"{where} has the choices of {len(controls)} controls, {', '.join(map(repr, controls))}; say which one "
            "names the class with candidates=NAME (--candidates NAME)"
        )
    if columns.candidates is not None and columns.candidates not in controls:
        raise DataError(
            f"{where} has no control {columns.candidates!r}; those with choices are {', '.join(map(repr, controls))}"
        )
