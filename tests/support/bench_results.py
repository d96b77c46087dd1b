"""Made-up results of a small suite, for tests of tables, figures and statistics."""

from __future__ import annotations

from mipl.bench.analysis import Results
from mipl.bench.store import Outcome, Record
from mipl.bench.suite import Suite

BEST, SAME, WORSE = "good & 100%_sure", "PL-kNN (Mean)", "PL-kNN (MaxMin)"


def suite(**changes):
    methods = [
        {"method": "PL-kNN", "label": "good & 100%_sure", "params": {"n_neighbors": 1}},
        {"method": "PL-kNN", "group": "Mean", "params": {"embed": "mean"}},
        {"method": "PL-kNN", "group": "MaxMin", "params": {"embed": "maxmin"}},
    ]
    given = {"methods": methods, "datasets": ["digits"], "r": [1, 2], "splits": 4, "name": "made"}
    return Suite(**{**given, "scores": ["accuracy"], **changes})


def record(cell, accuracy, scores=(), **outcome):
    values = {"fit_seconds": 2.0, "predict_seconds": 0.5, "peak_mib": 100.0, "threads": 1} | outcome
    state = "failed" if outcome.get("error") else "done"
    found = {} if accuracy is None else {"accuracy": accuracy, **dict(scores)}
    return Record(cell, state, 1, 0.0, 1.0, Outcome(scores=found, **values))


def made(lacks=lambda place: False, **changes):
    """Results in which BEST is better than WORSE by 0.1 to 0.13, and equal to SAME."""
    chosen = suite(**changes)
    level = {BEST: 0.8, SAME: 0.8, WORSE: 0.7}
    records = [
        record(
            cell, level[place.method] - (0.01 * place.split if place.method == WORSE else 0.0) - 0.1 * (place.r == 2)
        )
        for place, cell in chosen.cells().items()
        if not lacks(place)
    ]
    return Results(chosen, records)
