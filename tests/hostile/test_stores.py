"""Damaged stores of results and their exports: read, or refused in one line."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from bench_results import made
from hostile_files import DAMAGE, ODD, Tally

from mipl.bench.analysis import Results
from mipl.bench.store import Store, read_records
from mipl.bench.store.csv_file import write_csv
from mipl.errors import DataError

COUNTS = [pytest.param(20, id="sample"), pytest.param(800, id="campaign", marks=pytest.mark.slow)]


def stored(path: Path) -> Path:
    with Store(path) as store:
        store.begin_run({"host": "here"})
        store.add(list(made().done.values()), {1: {"host": "there"}})
    return path


def read(path: Path) -> None:
    records = read_records(path)
    Results(made().suite, records)
    with Store(path, create=False) as store:
        store.states(needed=["accuracy"])
        store.environments()


@pytest.mark.parametrize("count", COUNTS)
def test_a_store_with_damaged_bytes_is_read_or_refused(tmp_path: Path, count: int):
    content = stored(tmp_path / "r.sqlite").read_bytes()
    rng, tally = np.random.default_rng(10), Tally("damaged stores")
    for i in range(count):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "r.sqlite").write_bytes(DAMAGE[i % len(DAMAGE)](content, rng))
        tally.of(lambda folder=folder: read(folder / "r.sqlite"), i)
        shutil.rmtree(folder)
    tally.check()


@pytest.mark.parametrize("count", COUNTS)
def test_a_store_with_odd_values_is_read_or_refused(tmp_path: Path, count: int):
    stored(tmp_path / "r.sqlite")
    rng, tally = np.random.default_rng(11), Tally("odd values in stores")
    values = [v for v in ODD if not isinstance(v, list | dict) and v not in ("\ud800", 2**63, 10**30)]
    values += [b"\xff", '{"a": "b"}', "[1]", "{", "[" * 5000, '{"accuracy": "x"}', '{"accuracy": [1]}']
    for i in range(count):
        path = tmp_path / "d.sqlite"
        shutil.copy(tmp_path / "r.sqlite", path)
        with sqlite3.connect(path) as db:
            names = [row[1] for row in db.execute("PRAGMA table_info(results)")]
            db.execute("PRAGMA ignore_check_constraints = 1")
            try:
                db.execute(f"UPDATE results SET {rng.choice(names)} = ?", (values[int(rng.integers(len(values)))],))
            except sqlite3.IntegrityError:
                continue
        db.close()
        tally.of(lambda path=path: read(path), i)
        path.unlink()
    tally.check()


@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_export_is_read_or_refused(tmp_path: Path, count: int):
    path = write_csv(list(made().done.values()), tmp_path / "r.csv")
    content = path.read_bytes()
    rng, tally = np.random.default_rng(12), Tally("damaged exports")
    for i in range(count):
        path.write_bytes(DAMAGE[i % len(DAMAGE)](content, rng))
        tally.of(lambda: Results(made().suite, read_records(path)) and None, i)
    tally.check()


def test_a_score_that_is_no_number_names_the_store(tmp_path: Path):
    path = stored(tmp_path / "r.sqlite")
    with sqlite3.connect(path) as db:
        db.execute('UPDATE results SET scores = \'{"accuracy": "x"}\'')
    db.close()
    with pytest.raises(DataError, match=r"r\.sqlite is damaged or not a store of results"):
        read_records(path)
