"""The store of results: one SQLite file that survives a kill at any moment."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from mipl.bench.store.connection import connect, connect_reader, is_writable
from mipl.bench.store.migration import OLD_FORMAT, upgrade_store
from mipl.bench.store.records import Outcome, Record
from mipl.bench.store.schema import FORMAT, SCHEMA, insert, row_of, to_record
from mipl.bench.suite.cell import Cell
from mipl.errors import DataError, UnavailableError
from mipl.io.border import border

__all__ = ["Store"]

Answer = TypeVar("Answer")


def _reading(method: Callable[..., Answer]) -> Callable[..., Answer]:
    """Whatever a damaged file makes of a reading method is one `DataError`."""

    @wraps(method)
    def read(self: Store, *args: Any, **options: Any) -> Answer:
        with border(str(self.path), "a store of results"):
            return method(self, *args, **options)

    return read


class Store:
    """Results in one SQLite file, written at once and shared by any number of runs on this machine.

    A cell is first *claimed*, and then *finished*, which writes its result: both are transactions, so a reader sees a
    whole row or none, and of two runs only one gets a cell. A run that was killed leaves claims behind; each run
    therefore holds a lock on a file of its own, which the operating system frees the moment the process dies, and a
    claim counts only while that lock is held. A store of format 2 is brought to today's when it is opened.

    Parameters
    ----------
    path : str or Path
        The file.
    create : bool, default=True
        Make the file when it does not exist. False: it must exist, and is read where it may not be written.
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
            self._db = connect(self.path) if create or is_writable(self.path) else connect_reader(self.path)
            self._open_schema()
        except DataError:
            raise
        except Exception as error:  # of SQLite, or of what a damaged file has in its rows
            raise DataError(f"{self.path} cannot be used as a store of results: {error}") from error

    def _open_schema(self) -> None:
        if self._version() in (0, OLD_FORMAT):
            with self.transaction():
                # Another run may have made the tables while this one waited for the transaction.
                if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                    for statement in SCHEMA.split(";"):
                        self._db.execute(statement)
                elif self._version() == OLD_FORMAT:
                    self._upgrade()
        if self._version() != FORMAT:
            raise DataError(f"{self.path} is no store of results of format {FORMAT}; use another file")

    def _upgrade(self) -> None:
        runs = self._db.execute("SELECT id FROM runs").fetchall()
        if any(self._alive(row["id"]) for row in runs):
            raise DataError(f"a run of an older version of mipl works on {self.path}; wait until it has ended")
        upgrade_store(self._db)

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        """Give up the claims of this run and close the file."""
        if self._lock is not None:
            with suppress(UnavailableError):  # a full disk: claims of a run without its lock do not count anyway
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
        """Make the statements inside one durable write: all of them or none.

        Raises
        ------
        UnavailableError
            The file cannot be written: the disk is full, or another process holds the file for a minute.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite has rolled back by itself where the disk is full
                    with suppress(sqlite3.Error):
                        self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise UnavailableError(
                f"cannot write results to {self.path}: {error}; what has finished before is kept, and the same command "
                "goes on from there"
            ) from error

    # ---------------------------------------------------------------- running

    def begin_run(self, environment: dict[str, Any]) -> int:
        """Register this process as a run, so that it can claim cells; `environment` is kept with it."""
        with self.transaction():
            cursor = self._db.execute(
                "INSERT INTO runs (started, environment) VALUES (?, ?)", (time.time(), json.dumps(environment))
            )
            self.run = int(cursor.lastrowid or 0)
            # Inside the transaction: no other run can see the id before its lock is held.
            self._lock = self._lock_file(self.run).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self.run

    def claim(
        self, cell: Cell, *, retry_failed: bool = False, needed: Collection[str] = ()
    ) -> Literal["claimed", "settled", "taken"]:
        """Try to get a cell for this run, inside a `transaction`.

        Parameters
        ----------
        cell : Cell
            The cell.
        retry_failed : bool, default=False
            Claim it although it has failed.
        needed : collection of str, default=()
            Claim it although it is done, where it lacks one of these scores.

        Returns
        -------
        {"claimed", "settled", "taken"}
            "settled": it is done, or failed and not to be tried again. "taken": another live run works on it.
        """
        found = self._result(cell)
        if found is not None:
            again = retry_failed if found.state == "failed" else not found.outcome.scores.keys() >= set(needed)
            if not again:
                return "settled"
        holder = self._db.execute("SELECT run FROM claims WHERE key = ? AND code = ?", (cell.key, cell.code)).fetchone()
        if holder is not None and holder["run"] != self.run and self._alive(holder["run"]):
            return "taken"
        claim = {"key": cell.key, "code": cell.code, "run": self.run, "started": time.time()}
        self._db.execute(*insert("claims", {**claim, "cell": json.dumps(asdict(cell))}))
        return "claimed"

    def finish(self, cell: Cell, outcome: Outcome) -> None:
        """Write down what a claimed cell gave, inside a `transaction`.

        A cell that was done before keeps scores which were not computed again, and its whole result if it now failed.
        """
        claim = (cell.key, cell.code, self.run)
        held = self._db.execute("SELECT started FROM claims WHERE key = ? AND code = ? AND run = ?", claim).fetchone()
        if held is None:  # another run took the cell over
            return
        self._db.execute("DELETE FROM claims WHERE key = ? AND code = ? AND run = ?", claim)
        before = self._result(cell)
        if before is not None and before.state == "done":
            if outcome.error:
                return
            outcome = replace(outcome, scores={**before.outcome.scores, **outcome.scores})
        state: Literal["done", "failed"] = "failed" if outcome.error else "done"
        record = Record(cell, state, self.run, held["started"], time.time(), outcome)
        self._db.execute(*insert("results", row_of(record)))

    def release(self) -> None:
        """Give up the claims of this run on cells that it has not finished."""
        with self.transaction():
            self._db.execute("DELETE FROM claims WHERE run = ?", (self.run,))

    def add(self, records: Iterable[Record], environments: Mapping[int, dict[str, Any]]) -> int:
        """Take over finished and failed cells of another store, and give their number; what is here already stays.

        Parameters
        ----------
        records : iterable of Record
            What to take over; cells that run are left out.
        environments : mapping
            What each of the records' runs said of its machine; empty where it is not known.
        """
        added, runs = 0, dict[int, int]()
        with self.transaction():
            known = self.states()
            for record in sorted(records, key=lambda record: record.run):  # their order is kept
                if record.state == "running" or (record.cell.key, record.cell.code) in known:
                    continue
                if record.run not in runs:
                    values = record.started, json.dumps(environments.get(record.run, {}))
                    cursor = self._db.execute("INSERT INTO runs (started, environment) VALUES (?, ?)", values)
                    runs[record.run] = int(cursor.lastrowid or 0)
                self._db.execute(*insert("results", row_of(replace(record, run=runs[record.run]))))
                added += 1
        return added

    # ---------------------------------------------------------------- reading

    @_reading
    def states(self, *, any_code: bool = False, needed: Collection[str] = ()) -> dict[tuple[str, str], str]:
        """How each (key, code) with a result stands: done or failed.

        Parameters
        ----------
        any_code : bool, default=False
            Leave the code empty; a cell then stands as well as under the best of its versions.
        needed : collection of str, default=()
            Leave out cells that are done but lack one of these scores.
        """
        rows = self._db.execute("SELECT key, code, state, scores FROM results ORDER BY state = 'done'")
        return {
            (key, "" if any_code else code): state
            for key, code, state, scores in rows
            if not needed or state == "failed" or json.loads(scores).keys() >= set(needed)
        }

    @_reading
    def records(self) -> list[Record]:
        """All results, and the claims of runs that are alive."""
        rows = self._db.execute("SELECT * FROM results ORDER BY run, started").fetchall()
        claims = self._db.execute("SELECT * FROM claims ORDER BY run, started").fetchall()
        alive = {run: self._alive(run) for run in {claim["run"] for claim in claims}}
        running = [
            Record(Cell(**json.loads(claim["cell"])), "running", claim["run"], claim["started"], None, Outcome())
            for claim in claims
            if alive[claim["run"]]
        ]
        return [*map(to_record, rows), *running]

    @_reading
    def _result(self, cell: Cell) -> Record | None:
        row = self._db.execute("SELECT * FROM results WHERE key = ? AND code = ?", (cell.key, cell.code)).fetchone()
        return None if row is None else to_record(row)

    @_reading
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
