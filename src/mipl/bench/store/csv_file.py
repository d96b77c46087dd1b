"""Results as a CSV file, one row per cell and one column per score: to publish, to keep under version control.

Format 2 had accuracy as its only score and no processor time, and later files had no number of the run; all are read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from mipl.bench.store.migration import as_named_today
from mipl.bench.store.records import Outcome, Record
from mipl.bench.store.schema import check_types
from mipl.bench.suite.cell import Cell
from mipl.bench.suite.scores import SCORES
from mipl.errors import DataError
from mipl.io.atomic import atomic_path
from mipl.io.border import border

__all__ = ["read_csv", "write_csv"]

_CELL: dict[str, type] = {
    "dataset": str, "options": dict, "scale": str, "r": int, "method": str, "params": dict, "split": int,
    "train_size": float, "code": str,
}  # fmt: skip
_MEASURED: dict[str, type] = {
    "n_test": int, "fit_seconds": float, "fit_cpu_seconds": float, "predict_seconds": float, "peak_mib": float,
    "start_mib": float, "threads": int, "error": str, "finished": float, "run": int,
}  # fmt: skip
#: Columns that earlier versions did not write.
_LATER = ("fit_cpu_seconds", "run")
#: Decimals of measured columns; scores are kept exactly, for the tests.
_DIGITS = {
    "fit_seconds": 6, "fit_cpu_seconds": 6, "predict_seconds": 6, "peak_mib": 1, "start_mib": 1, "finished": 0,
}  # fmt: skip


def write_csv(records: Iterable[Record], path: str | Path) -> Path:
    """Export finished and failed cells, one per row; `read_csv` reads them back.

    Only scores that some cell has get a column; an empty field is a score that was not computed, "nan" one that is
    not defined.
    """
    settled = [record for record in records if record.state != "running"]
    settled.sort(key=lambda record: (record.cell.dataset, record.cell.r or 0, str(record.cell), *_rest(record.cell)))
    scores = [name for name in SCORES if any(name in record.outcome.scores for record in settled)]
    columns = [*_CELL, *scores, *_MEASURED]
    with (
        atomic_path(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for record in settled:
            values = {**vars(record.cell), **vars(record.outcome), **record.outcome.scores}
            values |= {"finished": record.finished, "run": record.run}
            writer.writerow([_to_text(values.get(name), _DIGITS.get(name)) for name in columns])
    return Path(path)


def read_csv(path: str | Path) -> list[Record]:
    """Read what `write_csv` wrote, also the one of format 2; parameters get today's names."""
    try:
        with border(str(path), "an export of results"), Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            scores = _scores_in(reader.fieldnames or [], path)
            return [check_types(_from_row(row, scores)) for row in reader]
    except DataError as error:
        raise DataError(f"cannot read results from {path}: {error}") from error


def _scores_in(header: Sequence[str], path: str | Path) -> list[str]:
    """The columns that hold scores; the others must be those of an export, today's or of format 2."""
    expected = {*_CELL, *_MEASURED}
    scores = [name for name in header if name in SCORES]
    if {*header, *_LATER} - {*scores} != expected:
        raise DataError(f"{path} is no export of results: its columns are {', '.join(header)}")
    return scores


def _from_row(row: dict[str, str], scores: Sequence[str]) -> Record:
    cell = Cell(**{name: _from_text(row[name], kind) for name, kind in _CELL.items()})
    measured = {name: _from_text(row.get(name, ""), kind) for name, kind in _MEASURED.items()}
    outcome = Outcome(
        scores={name: float(row[name]) for name in scores if row[name] != ""},
        **{f.name: measured[f.name] for f in fields(Outcome) if f.name in measured},
    )
    state: Literal["failed", "done"] = "failed" if outcome.error else "done"
    return Record(as_named_today(cell), state, measured["run"] or 0, 0.0, measured["finished"], outcome)


def _rest(cell: Cell) -> tuple[str, ...]:
    """What else tells two cells apart, so that the order of rows is always the same."""
    return str(cell.train_size), json.dumps(cell.options, sort_keys=True), cell.scale, cell.code


def _to_text(value: Any, digits: int | None) -> str:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if value is None:
        return ""
    return str(value) if digits is None else f"{value:.{digits}f}"


def _from_text(text: str, kind: type) -> Any:
    if kind is dict:
        return json.loads(text)
    if kind is str:
        return text
    return None if text == "" else kind(text)
