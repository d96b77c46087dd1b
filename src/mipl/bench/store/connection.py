"""Connections to a store: one that writes, and one for readers who may not write."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from mipl.bench.store.schema import FORMAT

__all__ = ["connect", "connect_reader", "is_writable"]


def is_writable(path: Path) -> bool:
    """Whether a store can be opened to be written: SQLite also makes files beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(place, os.W_OK, effective_ids=effective) for place in (path, path.parent))


def connect(path: Path) -> sqlite3.Connection:
    """Open a store to read and write it; it is made if need be."""
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.row_factory = sqlite3.Row
    # WAL: readers never wait for a writer. FULL: a commit is on the disk when it returns.
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a store in a folder where nothing may be written.

    While a run works on it, SQLite shares that run's files. Otherwise these are missing and cannot be made, and a store
    of an older format cannot be brought to today's: then a copy is read, which nobody else changes.
    """
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=60, isolation_level=None)
        db.row_factory = sqlite3.Row
        if db.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
            return db
        db.close()
    except sqlite3.OperationalError:
        pass
    with tempfile.TemporaryDirectory(prefix="mipl-") as folder:
        copy = Path(folder) / path.name
        for name in (path.name, f"{path.name}-wal"):
            if path.with_name(name).exists():
                shutil.copyfile(path.with_name(name), copy.with_name(name))
        # Into memory, so that the copy can be removed at once.
        whole = sqlite3.connect(":memory:", isolation_level=None)
        with sqlite3.connect(copy) as copied:
            copied.backup(whole)
        copied.close()
    whole.row_factory = sqlite3.Row
    return whole
