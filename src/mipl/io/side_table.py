"""Candidates that lie apart from the instances, joined by the bag: a table, votes of a crowd, a Label Studio export.

A *side table* has one row per bag with its candidates, or one row per answer of a person (a column
such as ``worker`` or ``annotator`` tells the two apart), or it is an export of Label Studio (``.json``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from mipl.errors import DataError
from mipl.io.answers import FILES, SideTable, answers_table, as_name, find_column, worker_column
from mipl.io.border import border, first_line, no_such_file
from mipl.io.columns import Columns, absent, find_roles
from mipl.io.csv import read_rows
from mipl.io.excel import read_sheet
from mipl.io.label_studio import read_export
from mipl.io.labels import candidates_or_problem, label_cell, restore_numbers
from mipl.io.parquet import open_parquet
from mipl.io.problems import Problem
from mipl.io.raw import RawBags

__all__ = ["attach", "read_side_table"]

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
    columns = columns.in_file(header)
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
