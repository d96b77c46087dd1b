import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl.bench import Store, Suite, run
from mipl.bench.cell import Cell, Outcome
from mipl.bench.results import Results, import_results, write_csv
from mipl.errors import DataError


@pytest.fixture
def bags(tmp_path):
    """A file with ten bags, the even ones of class 0."""
    rng = np.random.default_rng(0)
    file = tmp_path / "bags.npz"
    dataset = mipl.MIPLDataset([rng.normal(size=(3, 4)) for _ in range(10)], [{0, 1}] * 10, labels=[0, 1] * 5)
    dataset.save(file)
    return file


def methods(name, labels=("a",), **params):
    return [
        {"method": f"bench_methods:{name}", "label": label, "params": {"label": label, **params}} for label in labels
    ]


def records(store):
    with Store(store, create=False) as opened:
        return opened.records()


# -------------------------------------------------------------------- the protocol


def test_a_cell_equals_the_protocol_done_by_hand(tmp_path):
    store = tmp_path / "s.sqlite"
    run(Suite(methods=[{"method": "PL-kNN", "params": {"k": 3}}], datasets=["digits"], r=[2], splits=2), store)
    for record in records(store):
        train, test = mipl.load("digits", r=2).split(train_size=0.5, seed=record.cell.split)
        model = mipl.make("PL-kNN", k=3, random_state=record.cell.split).fit(train.bags, train.candidates)
        assert record.outcome.accuracy == model.score(test.bags, test.labels)
        assert record.outcome.n_test == len(test)
        assert record.outcome.fit_seconds > 0
        assert record.outcome.peak_mib >= record.outcome.start_mib > 10


def test_every_method_sees_the_same_splits(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    run(Suite(methods=methods("Constant", "abc"), datasets=[bags], splits=4), store, jobs=2)
    seen = {}
    for record in records(store):
        seen.setdefault(record.cell.split, set()).add(record.outcome.accuracy)
    assert all(len(accuracies) == 1 for accuracies in seen.values())


def test_peak_memory_belongs_to_the_cell(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite = Suite(methods=methods("Allocates", ["300", "10", "200"]), datasets=[bags], splits=1)
    run(suite, store)
    extra = {r.cell.params["label"]: r.outcome.memory_mib for r in records(store)}
    assert 290 < extra["300"] < 400
    assert extra["10"] < 60
    assert 190 < extra["200"] < 260


def test_a_users_method_in_the_current_folder_joins_by_its_import_path(tmp_path, bags):
    code = ["class Mine:", " def fit(self, bags, candidates): pass", " def predict(self, bags): return [0] * len(bags)"]
    (tmp_path / "my_module.py").write_text("\n".join(code))
    (tmp_path / "suite.toml").write_text('datasets = ["bags.npz"]\nmethods = ["my_module:Mine"]\nsplits = 2')
    # -P: the current folder is not on the path, as under the installed command
    call = subprocess.run(
        [sys.executable, "-P", "-m", "mipl", "bench", "run", "suite.toml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert call.returncode == 0, call.stderr
    assert all(record.outcome.accuracy is not None for record in records(tmp_path / "bench.sqlite"))


# -------------------------------------------------------------------- errors and limits


def test_a_failing_cell_is_recorded_and_stops_nothing(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite = Suite(methods=methods("BrokenOnOddSplits"), datasets=[bags], splits=4)
    assert run(suite, store, jobs=2) == 2
    results = Results(suite, records(store))
    assert sorted(place.split for place in results.done) == [0, 2]
    assert sorted(r.outcome.error for r in results.failed.values()) == [
        "RuntimeError: cannot fit split 1",
        "RuntimeError: cannot fit split 3",
    ]
    assert all("in fit" in r.outcome.traceback for r in results.failed.values())


def test_failed_cells_run_again_only_on_request(tmp_path, bags):
    store, mended = tmp_path / "s.sqlite", tmp_path / "mended"
    suite = Suite(methods=methods("BrokenUntilMended", log=str(mended)), datasets=[bags], splits=2)
    assert run(suite, store) == 2
    mended.touch()
    assert run(suite, store) == 2
    assert run(suite, store, retry_failed=True) == 0
    assert all(record.outcome.error == "" for record in records(store))


def errors(tmp_path, bags, specs, **limits):
    """Run methods on one split and give the outcome of each that failed."""
    suite = Suite(methods=specs, datasets=[bags], splits=1)
    run(suite, tmp_path / "s.sqlite", **limits)
    return {p.method: r.outcome for p, r in Results(suite, records(tmp_path / "s.sqlite")).failed.items()}


def test_a_cell_over_its_time_limit_is_stopped_and_the_next_one_runs(tmp_path, bags):
    specs = [*methods("Constant", ["slow"], seconds=600), *methods("Constant", ["fine"])]
    failed = errors(tmp_path, bags, specs, time_limit=2.0)
    assert {name: outcome.error for name, outcome in failed.items()} == {"slow": "TimeLimit: stopped after 2 s"}


def test_a_cell_over_its_memory_limit_is_stopped_and_the_next_one_runs(tmp_path, bags):
    failed = errors(tmp_path, bags, [*methods("Hungry", ["hungry"]), *methods("Constant", ["fine"])], memory_limit=500)
    assert list(failed) == ["hungry"]
    assert re.fullmatch(r"MemoryLimit: stopped at \d+ MiB, allowed are 500 MiB", failed["hungry"].error)


def test_a_dying_process_and_a_wrong_answer_are_failures_with_a_reason(tmp_path, bags):
    failed = errors(tmp_path, bags, [*methods("Dying", ["dying"]), *methods("WrongShape", ["shape"])])
    assert failed["dying"].error == "the process was killed by SIGSEGV"
    assert "last words" in failed["dying"].traceback
    assert "Segmentation fault" in failed["dying"].traceback
    assert "shape (5, 1) for 5 bags" in failed["shape"].error


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs to restrict processors")
def test_blas_threads_are_divided_among_the_jobs(tmp_path, bags, monkeypatch):
    processors = len(os.sched_getaffinity(0))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(6)))
    suite = Suite(methods=methods("Threads"), datasets=[bags], splits=1)
    run(suite, tmp_path / "s.sqlite", jobs=2)
    (record,) = records(tmp_path / "s.sqlite")
    # BLAS itself never takes more threads than it may use processors.
    assert record.outcome.error == f"RuntimeError: 3 {min(3, processors)}"
    assert record.outcome.threads == 3


# -------------------------------------------------------------------- kills


def start_run(suite_file, store, *options):
    """Start `mipl bench run` as a user does, in a process of its own."""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *filter(None, sys.path)])}
    return subprocess.Popen(
        [sys.executable, "-m", "mipl", "bench", "run", str(suite_file), "--store", str(store), *options],
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        # A test run that a shell put in the background ignores SIGINT, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def write_suite(tmp_path, bags, labels, splits, seconds):
    log = tmp_path / "log"
    log.touch()
    lines = [f'datasets = ["{bags}"]', f"splits = {splits}"]
    for method in methods("Constant", labels, log=str(log), seconds=seconds):
        params = json.dumps(method["params"]).replace('": ', '" = ')
        lines += ["[[methods]]", f'method = "{method["method"]}"', f'label = "{method["label"]}"', f"params = {params}"]
    file = tmp_path / "suite.toml"
    file.write_text("\n".join(lines))
    return file, log


def done_cells(store):
    """Finished cells as a reader of the raw file sees them, each of them whole."""
    if not store.exists():
        return set()
    with sqlite3.connect(store, timeout=30) as db:
        try:
            rows = db.execute("SELECT params, split, accuracy, fit_seconds FROM cells WHERE state = 'done'").fetchall()
        except sqlite3.OperationalError:  # the tables are not made yet
            return set()
    assert all(accuracy is not None and seconds is not None for _, _, accuracy, seconds in rows)
    return {(json.loads(params)["label"], split) for params, split, _, _ in rows}


def wait_for(condition, process, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.01)


def fits(log):
    """How often each cell was fitted, from the log that the methods write themselves."""
    return Counter((line.split()[0], int(line.split()[1])) for line in log.read_text().splitlines())


def workers(log):
    return {int(line.split()[2]) for line in log.read_text().splitlines()}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_run_keeps_what_it_finished_and_goes_on_without_repeating_it(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "abcd", splits=6, seconds=0.1)
    first = start_run(suite, store, "--jobs", "2")
    wait_for(lambda: len(done_cells(store)) >= 5, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = done_cells(store)
    assert 5 <= len(kept) < 24
    limit = time.monotonic() + 10
    while any(is_alive(pid) for pid in workers(log)):
        assert time.monotonic() < limit, "the workers of a killed run must end"
        time.sleep(0.02)
    with sqlite3.connect(store) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    second = start_run(suite, store, "--jobs", "2")
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said
    every = {(label, split) for label in "abcd" for split in range(6)}
    assert done_cells(store) == every
    counts = fits(log)
    assert all(counts[cell] == 1 for cell in kept)
    assert sum(counts.values()) <= len(every) + 2  # at most the two cells in flight are fitted again
    assert not list(tmp_path.glob("*.lock"))


def test_a_killed_worker_costs_no_result(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "ab", splits=6, seconds=0.2)
    process = start_run(suite, store, "--jobs", "2")
    wait_for(lambda: len(workers(log)) == 2, process)
    os.kill(min(workers(log)), signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert done_cells(store) == {(label, split) for label in "ab" for split in range(6)}
    assert len(workers(log)) == 3


def test_concurrent_runs_share_the_work(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "abc", splits=8, seconds=0.05)
    runs = [start_run(suite, store) for _ in range(3)]
    for process in runs:
        _, said = process.communicate(timeout=180)
        assert process.returncode == 0, said
    every = {(label, split) for label in "abc" for split in range(8)}
    assert done_cells(store) == every
    assert fits(log) == dict.fromkeys(every, 1)


@pytest.mark.slow
def test_kills_at_many_moments_never_lose_or_repeat_a_finished_cell(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "abcdefgh", splits=20, seconds=0.03)
    rng = np.random.default_rng(0)
    kept, lost = set(), 0
    for _ in range(12):
        pair = [start_run(suite, store, "--jobs", "2") for _ in range(2)]
        time.sleep(rng.uniform(0.5, 3.5))
        for process in pair:
            process.kill()
            process.wait()
        done = done_cells(store)
        assert kept <= done
        kept, lost = done, lost + 4
        with sqlite3.connect(store) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    last = start_run(suite, store, "--jobs", "2")
    _, said = last.communicate(timeout=300)
    assert last.returncode == 0, said
    counts = fits(log)
    assert done_cells(store) == {(label, split) for label in "abcdefgh" for split in range(20)}
    assert all(counts[cell] >= 1 for cell in kept)
    assert sum(counts.values()) <= 160 + lost


def test_an_interrupted_run_gives_its_claims_back_and_says_how_to_go_on(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, _ = write_suite(tmp_path, bags, "a", splits=50, seconds=0.2)
    process = start_run(suite, store)
    wait_for(lambda: len(done_cells(store)) >= 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command goes on" in said
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(*) FROM cells WHERE state = 'running'").fetchone() == (0,)


# -------------------------------------------------------------------- the store


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
        one.finish(cell(), Outcome(accuracy=0.1))  # too late: the cell is no longer its own
    with two.transaction():
        two.finish(cell(), Outcome(accuracy=0.9))
        assert two.claim(cell()) == "settled"
    assert [r.outcome.accuracy for r in two.records()] == [0.9]


def test_another_code_version_is_another_result(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store.begin_run({})
        with store.transaction():
            store.claim(cell(code="old"))
            store.finish(cell(code="old"), Outcome(accuracy=0.5))
            assert store.claim(cell(code="new")) == "claimed"
        assert store.states() == {(cell().key, "old"): "done", (cell().key, "new"): "running"}
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


# -------------------------------------------------------------------- results of others


@pytest.mark.parametrize("form", ["sqlite", "csv"])
def test_a_run_goes_on_from_imported_results(tmp_path, bags, form):
    theirs, mine = tmp_path / "theirs.sqlite", tmp_path / "mine.sqlite"
    suite = Suite(methods=methods("Constant", "ab"), datasets=[bags], splits=2)
    run(suite.select(methods=["a"]), theirs)
    source = theirs if form == "sqlite" else write_csv(records(theirs), tmp_path / "theirs.csv")
    assert import_results(source, mine) == 2
    assert import_results(source, mine) == 0
    before = {r.cell.key: r.finished for r in records(mine)}
    run(suite, mine)
    after = {r.cell.key: r.finished for r in records(mine)}
    assert len(after) == 4
    assert before.items() <= after.items()
    with Store(mine) as opened:
        assert [bool(e) for e in opened.environments().values()] == [form == "sqlite", True]
