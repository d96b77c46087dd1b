from dataclasses import replace

from bench_results import record, suite

from mipl.bench.analysis import Results
from mipl.bench.output import render, status
from mipl.bench.output.tables import accuracy_table
from mipl.bench.store import Outcome, Record


def test_a_failed_cell_is_no_result_and_is_said():
    chosen = suite(splits=1, r=[1])
    records = [record(cell, None, error="ValueError: no") for cell in chosen.cells().values()]
    results = Results(chosen, records)
    assert not results.summaries
    assert "3 of 3 cells failed" in render(accuracy_table(results), "text")
    assert "ValueError: no" in status(results)


def test_the_newest_code_counts_and_a_mixture_is_said():
    chosen = suite(splits=2, r=[1])
    cells = list(chosen.cells().items())
    old = [Record(replace(c, code="old"), "done", 1, 0.0, 1.0, Outcome(scores={"accuracy": 0.1})) for _, c in cells]
    new = [Record(c, "done", 1, 0.0, 2.0, Outcome(scores={"accuracy": 0.9})) for place, c in cells if place.split == 0]
    results = Results(chosen, [*new, *old])
    assert {place.split: r.outcome.scores["accuracy"] for place, r in results.done.items()} == {0: 0.9, 1: 0.1}
    assert any("more than one version of the code" in note for note in results.notes())
    assert "3 results were made by another version of the code" in status(results)


def test_the_latest_run_counts_although_a_clock_was_set_back():
    chosen = suite(splits=1, r=[1])
    (place, cell), *_ = chosen.cells().items()

    def made(code, run, finished, accuracy):
        return Record(replace(cell, code=code), "done", run, 0.0, finished, Outcome(scores={"accuracy": accuracy}))

    def counts(*records):
        return [Results(chosen, given).done[place].outcome.scores["accuracy"] for given in (records, records[::-1])]

    assert counts(made("older", 1, 9e9, 0.1), made("old", 2, 1.0, 0.2)) == [0.2, 0.2]
    # What the code at hand made counts before all others.
    assert counts(made(cell.code, 1, 1.0, 0.3), made("other", 2, 2.0, 0.4)) == [0.3, 0.3]
