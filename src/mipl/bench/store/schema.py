"""The tables of a store, and how a record becomes a row."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from mipl.bench.store.records import Outcome, Record
from mipl.bench.suite.cell import Cell

__all__ = ["FORMAT", "SCHEMA", "cell_of", "check_types", "insert", "row_of", "to_record"]

FORMAT = 3
_CELL = [f.name for f in fields(Cell)]
_OUTCOME = [f.name for f in fields(Outcome)]
_JSON = ("options", "params")
#: Types of fields; SQLite keeps whatever is in a damaged row.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("options", "params", "scores"), dict),
    **dict.fromkeys(("r", "n_test", "threads"), int | None),
    **dict.fromkeys(("fit_seconds", "fit_cpu_seconds", "predict_seconds", "peak_mib", "start_mib"), float | int | None),
    **dict.fromkeys(("dataset", "method", "scale", "code"), str),
    **dict.fromkeys(("host", "error", "traceback"), str | None),
    "split": int,
    "train_size": float | int,
}

#: A claim is a row of its own, so that a cell which is run again keeps its result until there is a new one.
SCHEMA = f"""
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, started REAL NOT NULL, environment TEXT NOT NULL);
CREATE TABLE claims (
    key TEXT NOT NULL, code TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs (id), started REAL NOT NULL,
    cell TEXT NOT NULL,
    PRIMARY KEY (key, code)
) WITHOUT ROWID;
CREATE TABLE results (
    key TEXT NOT NULL,
    code TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('done', 'failed')),
    run INTEGER NOT NULL REFERENCES runs (id),
    started REAL NOT NULL,
    finished REAL,
    dataset TEXT NOT NULL, options TEXT NOT NULL, scale TEXT NOT NULL, r INTEGER,
    method TEXT NOT NULL, params TEXT NOT NULL, split INTEGER NOT NULL, train_size REAL NOT NULL,
    scores TEXT NOT NULL, n_test INTEGER, fit_seconds REAL, fit_cpu_seconds REAL, predict_seconds REAL,
    peak_mib REAL, start_mib REAL, threads INTEGER, host TEXT, error TEXT, traceback TEXT,
    PRIMARY KEY (key, code)
) WITHOUT ROWID;
PRAGMA user_version = {FORMAT};
"""


def row_of(record: Record) -> dict[str, Any]:
    """The columns of a finished or failed record."""
    cell = {
        name: json.dumps(getattr(record.cell, name), sort_keys=True) if name in _JSON else getattr(record.cell, name)
        for name in _CELL
    }
    # Strict JSON has no NaN, and SQLite's own functions refuse it.
    scores = {name: None if math.isnan(value) else value for name, value in record.outcome.scores.items()}
    outcome = {name: _storable(value) for name, value in asdict(record.outcome).items()}
    return {
        "key": record.cell.key, "state": record.state, "run": record.run, "started": record.started,
        "finished": record.finished, **cell, **outcome, "scores": json.dumps(scores),
    }  # fmt: skip


def _storable(value: Any) -> Any:
    r"""Text that UTF-8 can hold: an error may quote a file name with a lone surrogate, which becomes \udcff."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def cell_of(row: sqlite3.Row) -> Cell:
    """The cell in a row."""
    return Cell(**{name: json.loads(row[name]) if name in _JSON else row[name] for name in _CELL})


def to_record(row: sqlite3.Row) -> Record:
    """The record in a row: the inverse of `row_of`."""
    scores = {name: math.nan if value is None else float(value) for name, value in json.loads(row["scores"]).items()}
    outcome = Outcome(scores=scores, **{name: row[name] for name in _OUTCOME if name != "scores"})
    return check_types(Record(cell_of(row), row["state"], row["run"], row["started"], row["finished"], outcome))


def check_types(record: Record) -> Record:
    """The record itself, unless a damaged file gave a field a value of another type."""
    for owner in (record.cell, record.outcome):
        for name, value in vars(owner).items():
            if not isinstance(value, _TYPES.get(name, object)):
                raise TypeError(f"{name!r} of a cell is {value!r:.60}")
    return record


def insert(table: str, row: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """The statement that writes a row, or writes over it, and its values."""
    marks = ", ".join("?" * len(row))
    return f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
