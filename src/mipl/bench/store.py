"""The store of results: one SQLite file that survives a kill at any moment."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Literal

from mipl.bench.cell import Cell, Outcome
from mipl.errors import DataError

__all__ = ["Record", "Store"]

FORMAT = 2
_CELL = [f.name for f in fields(Cell)]
_OUTCOME = [f.name for f in fields(Outcome)]
_JSON = ("options", "params")

_SCHEMA = f"""
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, started REAL NOT NULL, environment TEXT NOT NULL);
CREATE TABLE cells (
    key TEXT NOT NULL,
    code TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
    run INTEGER NOT NULL REFERENCES runs (id),
    started REAL NOT NULL,
    finished REAL,
    dataset TEXT NOT NULL, options TEXT NOT NULL, scale TEXT NOT NULL, r INTEGER,
    method TEXT NOT NULL, params TEXT NOT NULL, split INTEGER NOT NULL, train_size REAL NOT NULL,
    accuracy REAL, n_test INTEGER, fit_seconds REAL, predict_seconds REAL, peak_mib REAL, start_mib REAL,
    threads INTEGER, host TEXT, error TEXT, traceback TEXT,
    PRIMARY KEY (key, code)
) WITHOUT ROWID;
PRAGMA user_version = {FORMAT};
"""


@dataclass(frozen=True)
class Record:
    """A row of the store: a cell, how it stands, and what it gave."""

    cell: Cell
    state: Literal["running", "done", "failed"]
    run: int
    started: float
    finished: float | None
    outcome: Outcome


class Store:
    """Results in one SQLite file, written at once and shared by any number of runs on this machine.

    A cell is first *claimed*, which makes its row, and then *finished*, which fills it in: both are transactions, so
    a reader sees a whole row or none, and of two runs only one gets a cell. A run that was killed leaves claims
    behind; each run therefore holds a lock on a file of its own, which the operating system frees the moment the
    process dies, and a claim counts only while that lock is held.

    Parameters
    ----------
    path : str or Path
        Made when it does not exist, unless `create` is false.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        self.run = 0
        self._lock: IO[bytes] | None = None
        if not create and not self.path.is_file():
            raise DataError(f"no results at {self.path}; `mipl bench run` makes them")
        if not self.path.parent.is_dir():
            raise DataError(f"cannot write {self.path}: the folder {self.path.parent} does not exist")
        try:
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            # WAL: readers never wait for a writer. FULL: a commit is on the disk when it returns.
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._open_schema()
        except sqlite3.Error as error:
            raise DataError(f"{self.path} cannot be used as a store of results: {error}") from error

    def _open_schema(self) -> None:
        if self._version() == 0:
            with self.transaction():
                # Another run may have made the tables while this one waited for the transaction.
                if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                    for statement in _SCHEMA.split(";"):
                        self._db.execute(statement)
        if self._version() != FORMAT:
            raise DataError(f"{self.path} is no store of results of format {FORMAT}; use another file")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        """Give up the claims of this run and close the file."""
        if self._lock is not None:
            self.release()
            Path(self._lock.name).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the statements inside one durable write: all of them or none."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # ---------------------------------------------------------------- running

    def begin_run(self, environment: dict[str, Any]) -> int:
        """Register this process as a run, so that it can claim cells; `environment` is kept for the record."""
        with self.transaction():
            cursor = self._db.execute(
                "INSERT INTO runs (started, environment) VALUES (?, ?)", (time.time(), json.dumps(environment))
            )
            self.run = int(cursor.lastrowid or 0)
            # Inside the transaction: no other run can see the id before its lock is held.
            self._lock = self._lock_file(self.run).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self.run

    def claim(self, cell: Cell, *, retry_failed: bool = False) -> Literal["claimed", "settled", "taken"]:
        """Try to get a cell for this run, inside a `transaction`.

        ``"settled"``: it is done, or failed and not to be tried again. ``"taken"``: another live run works on it.
        """
        row = self._db.execute(
            "SELECT state, run FROM cells WHERE key = ? AND code = ?", (cell.key, cell.code)
        ).fetchone()
        if row is not None:
            if row["state"] == "done" or (row["state"] == "failed" and not retry_failed):
                return "settled"
            if row["state"] == "running" and row["run"] != self.run and self._alive(row["run"]):
                return "taken"
        values = {"key": cell.key, "state": "running", "run": self.run, "started": time.time(), **_as_columns(cell)}
        names = ", ".join(values)
        self._db.execute(
            f"INSERT OR REPLACE INTO cells ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
        )
        return "claimed"

    def finish(self, cell: Cell, outcome: Outcome) -> None:
        """Write down what a claimed cell gave, inside a `transaction`."""
        values = {"state": "failed" if outcome.error else "done", "finished": time.time(), **asdict(outcome)}
        self._db.execute(
            f"UPDATE cells SET {', '.join(f'{name} = ?' for name in values)} WHERE key = ? AND code = ? AND run = ?",
            (*values.values(), cell.key, cell.code, self.run),
        )

    def release(self) -> None:
        """Give up the claims of this run on cells that it has not finished."""
        with self.transaction():
            self._db.execute("DELETE FROM cells WHERE run = ? AND state = 'running'", (self.run,))

    def add(self, records: Iterable[Record], environments: Mapping[int, dict[str, Any]]) -> int:
        """Take over finished and failed cells of another store, and give their number; what is here already stays.

        environments : what each of the records' runs said of its machine; empty where it is not known
        """
        added, runs = 0, dict[int, int]()
        with self.transaction():
            known = self.states()
            for record in records:
                if record.state == "running" or (record.cell.key, record.cell.code) in known:
                    continue
                if record.run not in runs:
                    values = record.started, json.dumps(environments.get(record.run, {}))
                    cursor = self._db.execute("INSERT INTO runs (started, environment) VALUES (?, ?)", values)
                    runs[record.run] = int(cursor.lastrowid or 0)
                columns = {
                    "key": record.cell.key, "state": record.state, "run": runs[record.run], "started": record.started,
                    "finished": record.finished, **_as_columns(record.cell), **asdict(record.outcome),
                }  # fmt: skip
                names, marks = ", ".join(columns), ", ".join("?" * len(columns))
                self._db.execute(f"INSERT INTO cells ({names}) VALUES ({marks})", tuple(columns.values()))
                added += 1
        return added

    def states(self, *, any_code: bool = False) -> dict[tuple[str, str], str]:
        """How each (key, code) stands: running, done or failed.

        With `any_code` the code is empty, and a cell stands as well as under the best of its versions.
        """
        rows = self._db.execute("SELECT key, code, state FROM cells ORDER BY state = 'done', state = 'failed'")
        return {(key, "" if any_code else code): state for key, code, state in rows}

    # ---------------------------------------------------------------- reading

    def records(self) -> list[Record]:
        """All rows; a claim that its run left behind when it was killed is no row."""
        rows = self._db.execute("SELECT * FROM cells ORDER BY started").fetchall()
        alive = {run: self._alive(run) for run in {row["run"] for row in rows if row["state"] == "running"}}
        return [_as_record(row) for row in rows if row["state"] != "running" or alive[row["run"]]]

    def environments(self) -> dict[int, dict[str, Any]]:
        """What each run said of the machine and the libraries it ran with."""
        return {row["id"]: json.loads(row["environment"]) for row in self._db.execute("SELECT * FROM runs")}

    # ---------------------------------------------------------------- who lives

    def _lock_file(self, run: int) -> Path:
        return self.path.with_name(f"{self.path.name}-run{run}.lock")

    def _alive(self, run: int) -> bool:
        """Say whether a run's process lives: its lock cannot be taken."""
        if run == self.run:
            return True
        file = self._lock_file(run)
        try:
            with closing(file.open("rb")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        with suppress(OSError):  # a reader may not be allowed to tidy up
            file.unlink()
        return False


def _as_columns(cell: Cell) -> dict[str, Any]:
    return {
        name: json.dumps(getattr(cell, name), sort_keys=True) if name in _JSON else getattr(cell, name)
        for name in _CELL
    }


def _as_record(row: sqlite3.Row) -> Record:
    cell = Cell(**{name: json.loads(row[name]) if name in _JSON else row[name] for name in _CELL})
    outcome = Outcome(**{name: row[name] for name in _OUTCOME})
    return Record(cell, row["state"], row["run"], row["started"], row["finished"], outcome)
