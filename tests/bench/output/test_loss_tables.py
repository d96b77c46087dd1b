"""Tables of calibration error and log loss: smaller is better."""

from __future__ import annotations

import math

import pytest
from bench_results import BEST, SAME, WORSE, record, suite
from scipy.stats import ttest_rel

from mipl.bench.analysis import Results
from mipl.bench.output.loss_tables import loss_table, loss_tables

LOSS = {BEST: [9.9, 10.1, 10.0, 10.2], SAME: [10.0, 10.0, 10.1, 10.1], WORSE: [11.0, 11.3, 11.1, 11.2]}


def results(lacks=(), **changes):
    chosen = suite(**changes)
    records = []
    for place, cell in chosen.cells().items():
        scores = {} if place.method in lacks else {"log_loss": LOSS[place.method][place.split], "ece": math.nan}
        records.append(record(cell, 0.5, scores))
    return Results(chosen, records)


def entry(table, method, r=1):
    return table.rows[2 * [BEST, SAME, WORSE].index(method) + r - 1].entries[-1]


def test_the_smallest_mean_is_bold_and_the_reference_wins_where_it_is_smaller():
    table = loss_table(results(), "log_loss")
    best, same, worse = (entry(table, method) for method in (BEST, SAME, WORSE))
    assert (best.value, best.bold, best.marker) == (pytest.approx(10.05), True, "")
    assert (same.value, same.bold, same.marker) == (pytest.approx(10.05), True, "")
    assert (worse.value, worse.bold, worse.marker) == (pytest.approx(11.15), False, "win")
    assert ttest_rel(LOSS[BEST], LOSS[WORSE]).pvalue < 0.05 < ttest_rel(LOSS[BEST], LOSS[SAME]).pvalue


def test_the_reference_loses_where_it_is_larger():
    assert entry(loss_table(results(reference=WORSE), "log_loss"), BEST, r=2).marker == "loss"


def test_what_a_method_does_not_have_is_a_dash_and_what_the_reference_lacks_is_not_tested():
    table = loss_table(results(lacks=[BEST]), "log_loss")
    assert entry(table, BEST).value is None
    assert entry(table, WORSE).marker == "untested"


def test_only_losses_that_two_methods_have_get_a_table():
    assert [table.caption.split()[0] for table in loss_tables(results())] == ["Log"]
    assert loss_tables(results(lacks=[BEST, SAME])) == []
