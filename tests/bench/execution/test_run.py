import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from bench_runs import (
    PATIENCE,
    done_cells,
    environment,
    fits,
    methods,
    start_run,
    wait_for,
    wait_for_end,
    workers,
    write_suite,
)

import mipl
from mipl.bench import Store, Suite, run
from mipl.bench.analysis import Results
from mipl.bench.store import import_results, read_records
from mipl.bench.store.csv_file import write_csv
from mipl.errors import DataError
from mipl.scoring import log_loss

# -------------------------------------------------------------------- the protocol


def test_a_cell_equals_the_protocol_done_by_hand_and_progress_calls_its_method_as_tables_do(tmp_path, capsys):
    store = tmp_path / "s.sqlite"
    method = {"method": "PL-kNN", "label": "near", "group": "MaxMin", "params": {"embed": "maxmin"}}
    run(Suite(methods=[method], datasets=["digits"], r=[2], splits=2), store)
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in told[1:3]] == [
        f"[{i + 1}/2] digits r=2 split {i} near (MaxMin)" for i in (0, 1)
    ]
    for record in read_records(store):
        train, test = mipl.load("digits", r=2).split(train_size=0.5, seed=record.cell.split)
        model = mipl.make("PL-kNN", embed="maxmin", random_state=record.cell.split).fit(train.bags, train.candidates)
        assert record.outcome.scores["accuracy"] == model.score(test.bags, test.labels)
        assert record.outcome.n_test == len(test)
        assert record.outcome.fit_seconds > 0
        assert record.outcome.fit_cpu_seconds > 0
        assert record.outcome.peak_mib >= record.outcome.start_mib > 10


def test_every_method_sees_the_same_splits(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    run(Suite(methods=methods("Constant", "abc"), datasets=[bags], splits=4), store, jobs=2)
    seen = {}
    for record in read_records(store):
        seen.setdefault(record.cell.split, set()).add(record.outcome.scores["accuracy"])
    assert all(len(accuracies) == 1 for accuracies in seen.values())


def test_peak_memory_belongs_to_the_cell(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite = Suite(methods=methods("Allocates", ["300", "10", "200"]), datasets=[bags], splits=1)
    run(suite, store)
    extra = {r.cell.params["label"]: r.outcome.memory_mib for r in read_records(store)}
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
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert call.returncode == 0, call.stderr
    assert all(record.outcome.scores["accuracy"] is not None for record in read_records(tmp_path / "bench.sqlite"))


# -------------------------------------------------------------------- errors and limits


def test_a_failing_cell_is_recorded_and_stops_nothing(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite = Suite(methods=methods("BrokenOnOddSplits"), datasets=[bags], splits=4)
    assert run(suite, store, jobs=2) == 2
    results = Results(suite, read_records(store))
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
    assert all(record.outcome.error == "" for record in read_records(store))


def errors(store, bags, specs, **limits):
    """Run methods on one split and give the outcome of each that failed."""
    suite = Suite(methods=specs, datasets=[bags], splits=1)
    run(suite, store, **limits)
    return {p.method: r.outcome for p, r in Results(suite, read_records(store)).failed.items()}


def test_a_cell_over_its_time_limit_is_stopped_and_the_next_one_runs(tmp_path, bags):
    specs = [*methods("Constant", ["slow"], seconds=600), *methods("Constant", ["fine"])]
    for limit in (3, 30, 100):  # on a very busy machine even the quick one may take seconds
        failed = errors(tmp_path / f"{limit}.sqlite", bags, specs, time_limit=limit)
        assert failed["slow"].error == f"TimeLimit: stopped after {limit} s"
        if "fine" not in failed:
            break
    assert list(failed) == ["slow"]


def test_a_cell_over_its_memory_limit_is_stopped_and_the_next_one_runs(tmp_path, bags):
    specs = [*methods("Hungry", ["hungry"]), *methods("Constant", ["fine"])]
    failed = errors(tmp_path / "s.sqlite", bags, specs, memory_limit=500)
    assert list(failed) == ["hungry"]
    assert re.fullmatch(r"MemoryLimit: stopped at \d+ MiB, allowed are 500 MiB", failed["hungry"].error)


def test_a_dying_process_and_a_wrong_answer_are_failures_with_a_reason(tmp_path, bags):
    failed = errors(tmp_path / "s.sqlite", bags, [*methods("Dying", ["dying"]), *methods("WrongShape", ["shape"])])
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
    (record,) = read_records(tmp_path / "s.sqlite")
    # BLAS itself never takes more threads than it may use processors.
    assert record.outcome.error == f"RuntimeError: 3 {min(3, processors)}"
    assert record.outcome.threads == 3


def test_what_cannot_run_is_found_before_the_first_cell(tmp_path, bags):
    store, log = tmp_path / "s.sqlite", tmp_path / "log"
    broken = tmp_path / "broken.npz"
    broken.write_bytes(bags.read_bytes()[:100])
    bad = ["no_such_module:Any", {"method": "SURE", "params": {"lam": -1}}]
    suite = Suite(methods=[*methods("Constant", log=str(log)), *bad], datasets=[bags, broken], splits=2)
    with pytest.raises(DataError, match="nothing was run") as told:
        run(suite, store)
    for reason in ("No module named 'no_such_module'", "The 'lam' parameter of SURE", str(broken)):
        assert reason in str(told.value)
    assert "\n" not in str(told.value)
    assert not log.exists()
    assert read_records(store) == []
    assert run(suite.select(methods=["a"], datasets=[str(bags)]), store) == 0


# -------------------------------------------------------------------- kills


def test_a_killed_run_keeps_what_it_finished_and_goes_on_without_repeating_it(tmp_path, bags):
    store, gate = tmp_path / "s.sqlite", tmp_path / "gate"
    suite, log = write_suite(tmp_path, bags, "abcd", splits=6, name="Gated", gate=str(gate), free=2)
    first = start_run(suite, store, "--jobs", "2")
    # Splits 0 and 1 are done; then both workers stand before the gate.
    wait_for(lambda: len(done_cells(store)) == 8 and len(workers(log)) == 2, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = done_cells(store)
    assert kept == {(label, split) for label in "abcd" for split in range(2)}
    wait_for_end(workers(log), "the workers of a killed run must end")
    with sqlite3.connect(store) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    gate.touch()
    second = start_run(suite, store, "--jobs", "2")
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, said
    every = {(label, split) for label in "abcd" for split in range(6)}
    assert done_cells(store) == every
    assert fits(log) == dict.fromkeys(every, 1)
    assert not list(tmp_path.glob("*.lock"))


def test_a_killed_worker_costs_no_result(tmp_path, bags):
    store, gate = tmp_path / "s.sqlite", tmp_path / "gate"
    suite, log = write_suite(tmp_path, bags, "ab", splits=6, name="Gated", gate=str(gate))
    process = start_run(suite, store, "--jobs", "2")
    wait_for(lambda: len(workers(log)) == 2, process)
    os.kill(min(workers(log)), signal.SIGKILL)
    wait_for(lambda: len(workers(log)) == 3, process)
    gate.touch()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    every = {(label, split) for label in "ab" for split in range(6)}
    assert done_cells(store) == every
    assert fits(log) == dict.fromkeys(every, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_fit_that_holds_the_lock_dies_with_its_killed_run_and_so_do_its_children(tmp_path, bags):
    suite, log = write_suite(tmp_path, bags, "a", splits=1, name="HoldsTheLock")
    process = start_run(suite, tmp_path / "s.sqlite")
    wait_for(lambda: len(workers(log)) == 2, process)
    process.kill()
    process.wait()
    wait_for_end(workers(log), "the fit or its child lives on")


def test_concurrent_runs_share_the_work(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "abc", splits=8, seconds=0.05)
    runs = [start_run(suite, store) for _ in range(3)]
    for process in runs:
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    every = {(label, split) for label in "abc" for split in range(8)}
    assert done_cells(store) == every
    assert fits(log) == dict.fromkeys(every, 1)


@pytest.mark.slow
def test_kills_at_many_moments_never_lose_or_repeat_a_finished_cell(tmp_path, bags):
    store = tmp_path / "s.sqlite"
    suite, log = write_suite(tmp_path, bags, "abcdefgh", splits=20, seconds=0.03)
    rng = np.random.default_rng(0)
    finished = {}  # how often a cell had been fitted when it was first seen finished

    def check():
        counts = fits(log)
        done = done_cells(store)
        assert finished.keys() <= done
        assert all(counts[cell] == before for cell, before in finished.items())
        finished.update({cell: counts[cell] for cell in done - finished.keys()})

    for _ in range(12):
        pair = [start_run(suite, store, "--jobs", "2") for _ in range(2)]
        time.sleep(rng.uniform(0.5, 3.5))
        for process in pair:
            process.kill()
            process.wait()
        check()
        with sqlite3.connect(store) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    last = start_run(suite, store, "--jobs", "2")
    _, said = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0, said
    check()
    assert finished.keys() == {(label, split) for label in "abcdefgh" for split in range(20)}


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_gives_its_claims_back_and_says_how_to_go_on(tmp_path, bags, signum, code):
    store, gate = tmp_path / "s.sqlite", tmp_path / "gate"
    suite, _ = write_suite(tmp_path, bags, "a", splits=3, name="Gated", gate=str(gate), free=1)
    process = start_run(suite, store)
    wait_for(lambda: len(done_cells(store)) == 1, process)
    process.send_signal(signum)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "the same command goes on" in said.splitlines()[-1]
    assert "Traceback" not in said
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(*) FROM claims").fetchone() == (0,)


# -------------------------------------------------------------------- results of others


@pytest.mark.parametrize("form", ["sqlite", "csv"])
def test_a_run_goes_on_from_imported_results(tmp_path, bags, form):
    theirs, mine = tmp_path / "theirs.sqlite", tmp_path / "mine.sqlite"
    suite = Suite(methods=methods("Constant", "ab"), datasets=[bags], splits=2)
    run(suite.select(methods=["a"]), theirs)
    source = theirs if form == "sqlite" else write_csv(read_records(theirs), tmp_path / "theirs.csv")
    assert import_results(source, mine) == 2
    assert import_results(source, mine) == 0
    before = {r.cell.key: r.finished for r in read_records(mine)}
    run(suite, mine)
    after = {r.cell.key: r.finished for r in read_records(mine)}
    assert len(after) == 4
    assert before.items() <= after.items()
    with Store(mine) as opened:
        assert [bool(e) for e in opened.environments().values()] == [form == "sqlite", True]


# -------------------------------------------------------------------- scores


def test_more_scores_run_finished_cells_again_only_on_request(tmp_path, bags):
    store, log = tmp_path / "s.sqlite", tmp_path / "log"
    few = Suite(methods=methods("Constant", log=str(log)), datasets=[bags], splits=2, scores=["accuracy"])
    more = Suite(methods=methods("Constant", log=str(log)), datasets=[bags], splits=2, scores=["accuracy", "ece"])
    run(few, store)
    assert [c.key for c in few.cells().values()] == [c.key for c in more.cells().values()]
    assert Results(more, read_records(store)).lacking == {"ece": 2}
    run(more, store)
    assert fits(log) == {("a", 0): 1, ("a", 1): 1}
    run(more, store, missing_scores=True)
    assert fits(log) == {("a", 0): 2, ("a", 1): 2}
    # Constant has no probabilities: the score is not defined, which is not the same as missing.
    assert Results(more, read_records(store)).lacking == {}
    run(more, store, missing_scores=True)
    assert fits(log) == {("a", 0): 2, ("a", 1): 2}


def test_bags_drawn_per_split_are_those_of_the_splits_seed(tmp_path):
    store = tmp_path / "s.sqlite"
    suite = Suite(methods=["PL-kNN"], datasets=["digits"], splits=2, first_split=30, draw="per-split", train_size=0.7)
    run(suite, store)
    found = {r.cell.split: r.outcome.scores for r in read_records(store)}
    assert set(found) == {30, 31}
    for seed, scores in found.items():
        train, test = mipl.load("digits", r=1, seed=seed).split(0.7, seed)
        model = mipl.make("PL-kNN", random_state=seed).fit(train.bags, train.candidates)
        assert scores["accuracy"] == model.score(test.bags, test.labels)
        assert scores["log_loss"] == log_loss(test.labels, model.predict_proba(test.bags))
