"""Methods that misbehave, each in a worker process as a run has it."""

import re
import subprocess
import sys
import threading
import time

import pytest
from bench_runs import PATIENCE, environment, is_alive, workers

from mipl.bench.execution.cell_process import CellProcess, Limits
from mipl.bench.suite import Cell


@pytest.fixture
def process(request):
    """A worker, with limits where a test gives them."""
    made = CellProcess(limits=getattr(request, "param", None))
    yield made
    made.close()


@pytest.fixture
def outcome(process, bags):
    """What a method of `bench_methods` gives on the bags."""

    def of(method, scores=("accuracy",), **params):
        return process.run(Cell(str(bags), None, f"bench_methods:{method}", 0, params=params), scores)

    return of


@pytest.mark.parametrize("words", ["a line\n", "no end", '{"outcome": {"scores": {"accuracy": 1.0}}}\n'])
def test_stray_output_on_the_pipe_fails_its_cell_and_never_answers_for_the_next(outcome, words):
    assert re.match(
        "the process (wrote .*where its answer is due|gave an answer that)", outcome("WritesToPipes", words=words).error
    )
    next_one = outcome("Constant", label="next")
    assert next_one.error == ""
    assert 0 < next_one.scores["accuracy"] < 1


def test_a_forked_child_that_raises_fails_its_cell_and_never_answers_for_the_next(outcome):
    assert outcome("ForksAndRaises").error == (
        "the process forked a child that answered in its place: RuntimeError: in the child"
    )
    assert outcome("Constant", label="next").error == ""


def test_an_answer_that_comes_late_is_not_taken_for_that_of_a_later_cell(outcome, tmp_path):
    log = tmp_path / "later"
    assert outcome("LeavesAnswerBehind", gate=f"{log}.started").error == ""
    later = outcome("Constant", label="later", seconds=3.0, log=str(log))
    assert later.error == ""
    assert later.fit_seconds >= 3.0  # its own, not that of the earlier cell


def test_a_wrong_answer_is_a_failure_with_its_reason(outcome):
    for answer, told in (
        ("nan", "nan for test bag 0 and 4 more"),
        ("none", "None for test bag 0"),
        ("short", r"shape (4,) for 5 bags"),
        ("negative", "-1 for test bag 0"),
        ("beyond", "2 for test bag 0 and 4 more; the classes are the numbers 0 to 1"),
        ("names", "'owl' for test bag 0"),
        ("half", "0.5 for test bag 0"),
    ):
        assert told in outcome("Answers", answer=answer).error
    assert outcome("NaNProbabilities").error == "ValueError: predict_proba gave NaN in row 1"
    assert "predict_proba gave an array of shape ()" in outcome("NoProbabilities").error


def test_a_method_that_spoils_its_process_does_not_spoil_the_next_cell(outcome):
    assert outcome("ForgetsModules").error
    assert outcome("Constant", label="next").error == ""


def test_errors_of_any_text_are_told(outcome):
    assert outcome("FailsWith", label="surrogate").error == "ValueError: cannot read owl\udcff.wav"
    assert outcome("FailsWith", label="").error == "UnspeakableError: an error without a text"


@pytest.mark.parametrize("process", [Limits(seconds=2.0)], indirect=True)
def test_the_time_limit_covers_constructor_import_and_loading(process, outcome, bags, tmp_path, monkeypatch):
    assert outcome("SlowToMake").error == "TimeLimit: stopped after 2 s"
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)
    fresh = CellProcess(limits=process.limits)
    try:
        assert fresh.check(Cell(str(bags), None, "slow_module:Any", 0), "method") == ""  # the cell itself will tell
        told = fresh.run(Cell(str(bags), None, "slow_module:Any", 0), ["accuracy"]).error
    finally:
        fresh.close()
    assert told == "TimeLimit: stopped after 2 s"


@pytest.mark.parametrize("process", [Limits(memory_mib=600)], indirect=True)
def test_the_memory_limit_counts_children(outcome):
    assert re.fullmatch(r"MemoryLimit: stopped at \d+ MiB, allowed are 600 MiB", outcome("ChildrenEat").error)


def test_what_keeps_a_cell_from_running_is_found_without_a_fit(process, bags):
    def problem(method, part="method", **params):
        return process.check(Cell(str(bags), None, method, 0, params=params), part)

    assert problem("PL-kNN") == ""
    assert "has no parameter 'speed'" in problem("PL-kNN", speed=9)
    assert "The 'lam' parameter of SURE must be" in problem("SURE", lam=-1)
    assert problem("no_such_module:Any") == "ModuleNotFoundError: No module named 'no_such_module'"
    assert "has no attribute 'Missing'" in problem("bench_methods:Missing")
    assert "unexpected keyword argument 'depht'" in problem("bench_methods:Tunable", depht=2)
    assert problem("PL-kNN", "data") == ""
    broken = bags.with_name("broken.npz")
    broken.write_bytes(bags.read_bytes()[:100])
    assert str(broken) in process.check(Cell(str(broken), None, "PL-kNN", 0), "data")


COUNTS = """
import sys
from mipl.bench.execution import worker
from mipl.bench.suite import Cell

imported, fit = [], worker._fit

def counted(model, train):
    before = len(sys.modules)
    fit(model, train)
    imported.append(len(sys.modules) - before)

worker._fit = counted
assert not worker.run_cell(Cell(sys.argv[1], None, "MIPLGP", 0, params={"max_iter": 2})).error
print(*imported)
"""


def test_what_the_first_fit_of_a_process_imports_does_not_count_as_its_time(bags):
    words = [sys.executable, "-c", COUNTS, str(bags)]
    told = subprocess.run(words, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
    warm_up, timed = map(int, told.split())
    assert warm_up > 100  # an optimizer of PyTorch brings hundreds
    assert timed == 0


def test_a_closed_process_leaves_none_of_its_children_behind(process, bags, tmp_path):
    log = tmp_path / "log"
    cell = Cell(str(bags), None, "bench_methods:HoldsTheLock", 0, params={"log": str(log)})
    thread = threading.Thread(target=process.run, args=(cell, ["accuracy"]))
    thread.start()
    limit = time.monotonic() + PATIENCE
    while len(workers(log)) < 2:
        assert time.monotonic() < limit
        time.sleep(0.05)
    process.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not any(is_alive(pid) for pid in workers(log))
