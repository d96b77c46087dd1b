"""Exports of Label Studio: what several annotators chose for each task, as votes.

The full export (JSON) is a list of tasks, each with its ``data`` and its ``annotations``; the votes are in results of
type ``choices``. Annotations that were skipped (``was_cancelled``) do not count, nor do predictions of models.
The short export (JSON-MIN, and CSV) has one row per annotation, with the choice under the name of the control.
"""

from __future__ import annotations

from typing import Any

from mipl.errors import DataError
from mipl.io.answers import Answer, SideTable, answers_table, bag_column, votes_of
from mipl.io.columns import Columns

__all__ = ["read_export"]


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
