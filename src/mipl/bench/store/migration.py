"""What older versions wrote, in today's terms: stores of format 2, and parameters by their old names.

A parameter or method that gets another name gets a line here, so that stored cells keep their identity. A rename
after format 3 needs a new format, with a step beside `upgrade_store`.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from mipl.bench.store.records import Outcome, Record
from mipl.bench.store.schema import SCHEMA, cell_of, insert, row_of
from mipl.bench.suite.cell import Cell

__all__ = ["OLD_FORMAT", "as_named_today", "upgrade_store"]

OLD_FORMAT = 2

_MIPLGP = {
    "length_scale": "lengthscale", "output_scale": "outputscale", "n_iter": "max_iter", "lr": "learning_rate",
}  # fmt: skip
_NEIGHBOURS = {"k": "n_neighbors"}

#: method -> old name of a parameter -> today's
RENAMED_PARAMETERS: dict[str, dict[str, str]] = {
    "MIPLGP": _MIPLGP,
    "MIPLGP-uniform": _MIPLGP,
    "MIPLGP-naive": _MIPLGP,
    "PL-kNN": _NEIGHBOURS,
    "GM-PLL": {**_NEIGHBOURS, "nu": "unary_weight"},
    "PL-AGGD": {**_NEIGHBOURS, "width": "lengthscale"},
    "SURE": {"width": "lengthscale"},
    "LSB-CMM": {"stick_iter": "max_stick_iter"},
    "LM-VGPMIL": {"open_iter": "n_open_iter"},
    "MIVAE": {"latent": "latent_dim", "hidden": "hidden_dim"},
}
#: old name of a method -> today's
RENAMED_METHODS: dict[str, str] = {}


def as_named_today(cell: Cell) -> Cell:
    """The same cell under today's names of its method and parameters.

    >>> as_named_today(Cell("digits", 1, "PL-kNN", 0, params={"k": 3, "embed": "mean"})).params
    {'n_neighbors': 3, 'embed': 'mean'}
    """
    method = RENAMED_METHODS.get(cell.method, cell.method)
    names = RENAMED_PARAMETERS.get(method, {})
    return replace(cell, method=method, params={names.get(name, name): value for name, value in cell.params.items()})


def upgrade_store(db: sqlite3.Connection) -> None:
    """Turn the tables of format 2 into those of format 3, inside a transaction of the caller.

    Claims are dropped: the caller has seen to it that no run of the older version is alive.
    """
    rows = db.execute("SELECT * FROM cells WHERE state != 'running'").fetchall()
    runs = db.execute("SELECT id, started, environment FROM runs").fetchall()
    db.execute("DROP TABLE cells")
    db.execute("DROP TABLE runs")
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.executemany("INSERT INTO runs (id, started, environment) VALUES (?, ?, ?)", [tuple(row) for row in runs])
    for row in rows:
        db.execute(*insert("results", row_of(_record_of_format_2(row))))


def _record_of_format_2(row: sqlite3.Row) -> Record:
    kept = (
        "n_test",
        "fit_seconds",
        "predict_seconds",
        "peak_mib",
        "start_mib",
        "threads",
        "host",
        "error",
        "traceback",
    )
    scores = {} if row["accuracy"] is None else {"accuracy": row["accuracy"]}
    outcome = Outcome(scores=scores, **{name: row[name] for name in kept})
    return Record(as_named_today(cell_of(row)), row["state"], row["run"], row["started"], row["finished"], outcome)
