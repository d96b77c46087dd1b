import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from bench_results import record

from mipl.bench import Store
from mipl.bench.store import Outcome, read_records
from mipl.bench.suite import Cell

NOBODY = 65534


def cell(split=0):
    return Cell(dataset="digits", r=1, method="PL-kNN", split=split, code="c")


@pytest.fixture
def folder():
    """A folder that everyone may read, outside those of the tests, which are private."""
    made = Path(tempfile.mkdtemp(prefix="mipl-test-"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture
def without_permission(folder):
    """Take away the right to write in the folder, also from root, until the end of the test."""
    root = os.geteuid() == 0

    def give_up():
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        if root:
            os.seteuid(NOBODY)

    yield give_up
    if root:
        os.seteuid(0)


def test_a_store_at_rest_is_read_in_a_folder_where_nothing_may_be_written(folder, without_permission):
    path = folder / "s.sqlite"
    with Store(path) as store:
        store.add([record(cell(), 0.5)], {})
    without_permission()
    with pytest.raises(PermissionError):
        (folder / "x").touch()
    assert [r.outcome.scores for r in read_records(path)] == [{"accuracy": 0.5}]
    assert [file.name for file in folder.iterdir()] == ["s.sqlite"]


def test_a_store_that_a_run_works_on_is_read_there_with_its_newest_results(folder, without_permission):
    path = folder / "s.sqlite"
    store = Store(path)
    store.begin_run({})
    with store.transaction():
        store.claim(cell(0))
        store.claim(cell(1))
        store.finish(cell(0), Outcome(scores={"accuracy": 0.75}))
    without_permission()
    assert [(r.cell.split, r.state) for r in read_records(path)] == [(0, "done"), (1, "running")]
    if os.getuid() == 0:
        os.seteuid(0)
    store.close()


def test_what_a_killed_run_left_in_its_log_is_read_there_too(folder, without_permission):
    path = folder / "s.sqlite"
    store = Store(path)
    store.begin_run({})
    with store.transaction():
        store.claim(cell())
        store.finish(cell(), Outcome(scores={"accuracy": 0.25}))
    # What a kill leaves: the results still stand in the log, and nobody shares it.
    for name in ("s.sqlite", "s.sqlite-wal"):
        shutil.copy(folder / name, folder / f"killed{name.removeprefix('s')}")
    store.close()
    with sqlite3.connect(folder / "s.sqlite") as db:
        assert db.execute("SELECT count(*) FROM results").fetchone() == (1,)
    without_permission()
    assert [r.outcome.scores for r in read_records(folder / "killed.sqlite")] == [{"accuracy": 0.25}]
