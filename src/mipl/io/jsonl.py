"""JSON lines: one bag per line, or one instance per line, with the columns of Parquet.

What the lines cannot say (a class that is nobody's candidate, an order of classes other than sorted, the shape of an
instance, feature names) stands in a first line ``{"mipl": {...}}``, written only where it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import first_line, open_decompressed
from mipl.io.options import Columns
from mipl.io.raw import RawBags
from mipl.io.table import check_metadata, from_table

__all__ = ["open_lines", "read", "write"]


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`."""
    labels = dataset.label_names()
    extra = _what_lines_lose(dataset)
    with path.open("wb") as file:
        if extra:
            file.write(json.dumps({"mipl": extra}).encode() + b"\n")
        for i, (instances, candidates) in enumerate(zip(dataset.bags, dataset.candidate_sets(), strict=True)):
            row: dict[str, Any] = {
                "bag_id": dataset.bag_ids[i].item(),
                "instances": instances.tolist(),
                "candidates": candidates,
            }
            if dataset.candidate_weights is not None:
                row["weights"] = dataset.candidate_weights[i][dataset.candidates[i]].tolist()
            if labels is not None:
                row["label"] = labels[i]
            if dataset.instance_labels is not None:
                start, end = dataset.bags.offsets[i : i + 2]
                row["instance_labels"] = dataset.instance_labels[start:end].tolist()
            if dataset.groups is not None:
                row["group"] = dataset.groups[i].item()
            file.write(json.dumps(row).encode() + b"\n")


def _what_lines_lose(dataset: MIPLDataset) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    used = dataset.candidates.any(axis=0)
    blank = any(name != name.strip() for name in dataset.classes.astype(str).tolist())
    if blank or not used.all() or not np.array_equal(np.sort(dataset.classes), dataset.classes):
        extra["classes"] = dataset.classes.tolist()
    if dataset.bags.instance_shape != (dataset.bags.n_features,):
        extra["instance_shape"] = list(dataset.bags.instance_shape)
    if dataset.background is not None:
        extra["background"] = dataset.background
    if dataset.bags.feature_names is not None:
        extra["feature_names"] = list(dataset.bags.feature_names)
    return extra


def read(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read bags from the content of a file.

    Parameters
    ----------
    data : bytes
        The content, not compressed.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    extra, rows, numbers = _parsed(enumerate(data.splitlines(), start=1), where)
    if not rows:
        raise DataError(f"{where} has no lines: the data set is empty")
    return from_table(_table(rows, numbers, where), where, columns, extra, lines=np.array(numbers))


def open_lines(path: Path, rows: int, max_bytes: int) -> tuple[Iterator[pa.Table], dict[str, Any]]:
    """Open a large file to read it piece by piece.

    Parameters
    ----------
    path : Path
        The file, compressed where its suffix says so.
    rows : int
        The most lines of a piece.
    max_bytes : int
        About the most bytes of text of a piece.

    Returns
    -------
    tables : iterator of pyarrow.Table
        The lines of the file; a column that a piece lacks is missing there.
    extra : dict
        The metadata of mipl.
    """
    where = str(path)
    with open_decompressed(path) as file:
        extra = _parsed([(1, file.readline())], where)[0]

    def tables() -> Iterator[pa.Table]:
        with open_decompressed(path) as file:
            numbered = enumerate(file, start=1)
            while lines := _some(numbered, rows, max_bytes):
                if (found := _parsed(lines, where)[1:])[0]:
                    yield _table(*found, where)

    return tables(), extra


def _some(numbered: Iterator[tuple[int, bytes]], rows: int, max_bytes: int) -> list[tuple[int, bytes]]:
    """The next lines, as many as a piece has."""
    lines: list[tuple[int, bytes]] = []
    size = 0
    for number, line in numbered:
        lines.append((number, line))
        size += len(line)
        if len(lines) >= rows or size >= max_bytes:
            break
    return lines


def _parsed(lines: Iterable[tuple[int, bytes]], where: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[int]]:
    """The metadata of mipl, which stand in line 1, the other lines as dictionaries, and their numbers."""
    extra: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number, line in lines:
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: line {number} is not JSON ({first_line(error)})") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: line {number} is not a JSON object; write one bag or instance per line")
        if number == 1 and set(row) == {"mipl"} and isinstance(row["mipl"], dict):
            extra = check_metadata(row["mipl"], f"{where}, line 1")
        else:
            rows.append(row)
            numbers.append(number)
    return extra, rows, numbers


def _table(rows: list[dict[str, Any]], numbers: list[int], where: str) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = {}
    for name in names:
        cells: list[Any] = [_number_lists(row.get(name)) if name == "instances" else row.get(name) for row in rows]
        if all(type(cell) is int for cell in cells) and not all(-(2**63) <= cell < 2**63 for cell in cells):
            cells = list(map(str, cells))  # Arrow has no integers as large
        try:
            arrays[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            told = _first_other_kind(cells, numbers) or first_line(error)
            raise DataError(f"{where}: the values of {name!r} are not of one kind ({told})") from error
    return pa.table(arrays)


def _first_other_kind(cells: list[Any], numbers: list[int]) -> str:
    """Two lines whose cells are not of one kind; nothing where the difference is within the cells."""
    words = {str: "text", list: "a list", dict: "an object", bool: "true or false"}
    kinds = [
        (number, words.get(type(cell), "a number"))
        for number, cell in zip(numbers, cells, strict=True)
        if cell is not None
    ]
    other = next(((number, kind) for number, kind in kinds if kind != kinds[0][1]), None)
    return "" if other is None else f"line {kinds[0][0]} has {kinds[0][1]}, line {other[0]} {other[1]}"


def _number_lists(cell: Any) -> Any:
    """Instances as floats: JSON writes 1 for 1.0, and Arrow does not mix them in lists; text is no number."""
    try:
        return [[None if v is None else v * 1.0 for v in row] for row in cell]
    except TypeError:
        return cell
