import math
import sqlite3

import pytest

from mipl.bench import Store
from mipl.bench.store import Outcome, Record, read_records
from mipl.bench.store.csv_file import write_csv
from mipl.bench.suite import Cell
from mipl.errors import DataError, UnavailableError


def cell(split=0, code="c"):
    return Cell(dataset="digits", r=1, method="PL-kNN", split=split, code=code)


def test_a_claim_is_exclusive_while_its_run_lives_and_void_afterwards(tmp_path):
    path = tmp_path / "s.sqlite"
    one, two = Store(path), Store(path)
    one.begin_run({})
    two.begin_run({})
    with one.transaction():
        assert one.claim(cell()) == "claimed"
    with two.transaction():
        assert two.claim(cell()) == "taken"
    one._lock.close()  # what the operating system does when the process dies
    assert two.records() == []
    with two.transaction():
        assert two.claim(cell()) == "claimed"
    with one.transaction():
        one.finish(cell(), Outcome(scores={"accuracy": 0.1}))  # too late: the cell is no longer its own
    with two.transaction():
        two.finish(cell(), Outcome(scores={"accuracy": 0.9}))
        assert two.claim(cell()) == "settled"
    assert [r.outcome.scores["accuracy"] for r in two.records()] == [0.9]


def test_another_code_version_is_another_result(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.begin_run({})
        with store.transaction():
            store.claim(cell(code="old"))
            store.finish(cell(code="old"), Outcome(scores={"accuracy": 0.5}))
            assert store.claim(cell(code="new")) == "claimed"
        assert store.states() == {(cell().key, "old"): "done"}
        assert store.states(any_code=True) == {(cell().key, ""): "done"}


def test_a_foreign_file_is_refused(tmp_path):
    file = tmp_path / "notes.sqlite"
    file.write_text("not a database, but long enough to look like one" * 50)
    with pytest.raises(DataError, match="cannot be used as a store"):
        Store(file)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(DataError, match="no store of results"):
        Store(other)
    with pytest.raises(DataError, match="no results at"):
        Store(tmp_path / "absent.sqlite", create=False)


def test_scores_come_back_as_they_were_and_the_file_holds_strict_json(tmp_path):
    scores = {"accuracy": 0.1 + 0.2, "instance_ap": math.nan}
    with Store(tmp_path / "s.sqlite") as store:
        store.begin_run({})
        with store.transaction():
            store.claim(cell())
            store.finish(cell(), Outcome(scores=scores, fit_cpu_seconds=1.5))
        (record,) = store.records()
    assert record.outcome.scores["accuracy"] == 0.1 + 0.2
    assert math.isnan(record.outcome.scores["instance_ap"])
    assert record.outcome.fit_cpu_seconds == 1.5
    with sqlite3.connect(tmp_path / "s.sqlite") as db:
        assert db.execute("SELECT json_extract(scores, '$.accuracy') FROM results").fetchone() == (0.1 + 0.2,)


def test_a_cell_that_lacks_a_score_is_claimed_again_on_request_and_keeps_its_result_until_then(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.begin_run({})

        def finish(outcome, needed=()):
            with store.transaction():
                assert store.claim(cell(), needed=needed) == "claimed"
                assert [r.outcome.scores for r in store.records() if r.state == "done"] == before
                store.finish(cell(), outcome)

        before = []
        finish(Outcome(scores={"accuracy": 0.5, "label_free": 0.1}))
        before = [{"accuracy": 0.5, "label_free": 0.1}]
        with store.transaction():
            assert store.claim(cell()) == "settled"
            assert store.claim(cell(), needed=["accuracy"]) == "settled"
        assert store.states(needed=["accuracy", "ece"]) == {}
        finish(Outcome(error="no"), needed=["accuracy", "ece"])
        assert [r.outcome.scores for r in store.records()] == before  # a second try that fails takes nothing away
        finish(Outcome(scores={"accuracy": 0.5, "ece": 0.2}), needed=["accuracy", "ece"])
        assert [r.outcome.scores for r in store.records()] == [{"accuracy": 0.5, "label_free": 0.1, "ece": 0.2}]
        with store.transaction():
            assert store.claim(cell(), needed=["accuracy", "ece"]) == "settled"


def test_an_error_with_a_lone_surrogate_is_stored_and_exported(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.begin_run({})
        with store.transaction():
            store.claim(cell())
            store.finish(cell(), Outcome(error="cannot read owl\udcff.wav", traceback="\ud800"))
        (record,) = store.records()
    assert (record.outcome.error, record.outcome.traceback) == (r"cannot read owl\udcff.wav", r"\ud800")
    broken = Record(cell(), "failed", 1, 0.0, 1.0, Outcome(error="owl\udcff"))
    assert r"owl\udcff" in write_csv([broken], tmp_path / "x.csv").read_text()


def test_a_full_disk_ends_in_a_clear_error_and_keeps_what_was_finished(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.begin_run({})

        def finish(split, words):
            with store.transaction():
                store.claim(cell(split))
                store.finish(cell(split), Outcome(error=words))

        finish(0, "small")
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to have no room left
        with pytest.raises(UnavailableError, match=r"cannot write results to .*s\.sqlite: database or disk is full"):
            finish(1, "large" * 100_000)
        with store.transaction():  # and the store can still be used
            assert store.claim(cell(0)) == "settled"
    assert [r.cell.split for r in read_records(path)] == [0]


def test_a_disk_without_any_room_lets_a_run_end_without_a_second_error(tmp_path, monkeypatch):
    store = Store(tmp_path / "s.sqlite")
    store.begin_run({})
    with store.transaction():
        store.claim(cell())
    real = store._db

    class Full:
        in_transaction = True

        def execute(self, *_):
            raise sqlite3.OperationalError("disk I/O error")

        def close(self):
            real.close()

    monkeypatch.setattr(store, "_db", Full())
    with pytest.raises(UnavailableError, match="disk I/O error"), store.transaction():
        pass
    store.close()
    assert not list(tmp_path.glob("*.lock"))
    with Store(tmp_path / "s.sqlite") as again:
        assert again.records() == []  # the claim does not count without its run
