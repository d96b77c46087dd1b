"""Files of format 2 are written here as that version wrote them, column by column."""

import fcntl
import json
import sqlite3
from dataclasses import replace

import pytest

from mipl.bench import Store, Suite
from mipl.bench.analysis import Results
from mipl.bench.store import read_records
from mipl.bench.suite import Cell
from mipl.errors import DataError

SCHEMA = """
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, started REAL NOT NULL, environment TEXT NOT NULL);
CREATE TABLE cells (
    key TEXT NOT NULL, code TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed')),
    run INTEGER NOT NULL REFERENCES runs (id), started REAL NOT NULL, finished REAL,
    dataset TEXT NOT NULL, options TEXT NOT NULL, scale TEXT NOT NULL, r INTEGER,
    method TEXT NOT NULL, params TEXT NOT NULL, split INTEGER NOT NULL, train_size REAL NOT NULL,
    accuracy REAL, n_test INTEGER, fit_seconds REAL, predict_seconds REAL, peak_mib REAL, start_mib REAL,
    threads INTEGER, host TEXT, error TEXT, traceback TEXT,
    PRIMARY KEY (key, code)
) WITHOUT ROWID;
PRAGMA user_version = 2;
"""
OLD_HEADER = (
    "dataset,options,scale,r,method,params,split,train_size,code,accuracy,n_test,fit_seconds,predict_seconds,peak_mib,"
    "start_mib,threads,error,finished"
)


@pytest.fixture
def old_store(tmp_path):
    """A finished cell, a failed one and a claim that a killed run left behind."""
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO runs VALUES (7, 1.5, ?)", (json.dumps({"numpy": "2"}),))
        for split, state, accuracy, error in (
            (0, "done", 0.75, ""),
            (1, "failed", None, "no"),
            (2, "running", None, ""),
        ):
            params = json.dumps({"embed": "mean", "k": 3})
            db.execute(
                "INSERT INTO cells VALUES (?, 'c', ?, 7, 2.5, 3.5, 'digits', '{}', '', 1, 'PL-kNN', ?, ?, 0.5, ?, 90, "
                "0.25, 0.125, 100.0, 90.0, 1, 'host', ?, '')",
                (f"key of {split}", state, params, split, accuracy, error),
            )
    return path


def suite():
    params = {"embed": "mean", "n_neighbors": 3}
    return Suite(methods=[{"method": "PL-kNN", "params": params}], datasets=["digits"], splits=3, scores=["accuracy"])


def test_a_store_of_format_2_is_found_by_todays_suite_and_can_be_gone_on_with(old_store):
    results = Results.read(suite(), old_store)
    ((_, done),) = results.done.items()
    assert done.outcome.scores == {"accuracy": 0.75}
    assert (done.outcome.fit_seconds, done.outcome.fit_cpu_seconds, done.outcome.n_test) == (0.25, None, 90)
    assert (done.started, done.finished, done.cell.code) == (2.5, 3.5, "c")
    assert [place.split for place in results.failed] == [1]
    assert not results.running
    with Store(old_store) as store:
        assert store.environments() == {7: {"numpy": "2"}}
        assert store.begin_run({}) > 7
        with store.transaction():
            answers = [store.claim(replace(c, code="c")) for c in suite().cells().values()]
    assert answers == ["settled", "settled", "claimed"]


def test_a_store_that_an_older_version_is_writing_is_left_alone(old_store):
    with old_store.with_name("old.sqlite-run7.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="older version of mipl works on"):
            Store(old_store)
    with sqlite3.connect(old_store) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM cells").fetchone() == (3,)
    assert len(read_records(old_store)) == 2


def test_a_csv_file_of_format_2_is_found_by_todays_suite(tmp_path):
    params = '"{""embed"": ""mean"", ""k"": 3}"'
    row = f"digits,{{}},,1,PL-kNN,{params},2,0.5,c,0.75,90,0.250000,0.125000,100.0,90.0,1,,1794819446"
    (tmp_path / "old.csv").write_text(f"{OLD_HEADER}\n{row}\n")
    results = Results.read(suite(), tmp_path / "old.csv")
    ((place, record),) = results.done.items()
    assert place.split == 2
    assert record.outcome.scores == {"accuracy": 0.75}
    assert record.outcome.fit_cpu_seconds is None


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        ("MIPLGP", {"length_scale": 1.0, "n_iter": 5, "nu": 0.5}, {"lengthscale": 1.0, "max_iter": 5, "nu": 0.5}),
        ("MIPLGP-naive", {"output_scale": 1.0, "lr": 0.1}, {"outputscale": 1.0, "learning_rate": 0.1}),
        ("GM-PLL", {"k": 5}, {"n_neighbors": 5}),
        ("PL-AGGD", {"k": 5}, {"n_neighbors": 5}),
        ("SURE", {"k": 5}, {"k": 5}),
        ("mine:Own", {"k": 5, "n_iter": 1}, {"k": 5, "n_iter": 1}),
    ],
)
def test_renamed_parameters_keep_the_identity_of_a_cell(tmp_path, method, old, new):
    params = json.dumps(old).replace('"', '""')
    (tmp_path / "old.csv").write_text(f'{OLD_HEADER}\ndigits,{{}},,1,{method},"{params}",0,0.5,c,0.5,,,,,,,,\n')
    (record,) = read_records(tmp_path / "old.csv")
    assert record.cell.key == Cell("digits", 1, method, 0, params=new).key
