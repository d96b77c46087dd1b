"""Tables of the scores that tell how honest probabilities are: smaller is better, tested like accuracy."""

from __future__ import annotations

import math

from mipl.bench.analysis.results import Results
from mipl.bench.analysis.statistics import compare, spread
from mipl.bench.output.table import Entry, Row, Table
from mipl.bench.suite.scores import SCORES

__all__ = ["LOSSES", "loss_table", "loss_tables"]

#: Scores of which smaller is better, and which a comparison of several methods shows.
LOSSES = ("ece", "log_loss")

Problem = tuple[str, int | None]


def loss_tables(results: Results) -> list[Table]:
    """A table for each of `LOSSES` that two or more methods have."""
    summaries = results.summaries.values()
    having = {name: {s.method for s in summaries if name in s.scores and s.scores[name].n} for name in LOSSES}
    return [loss_table(results, name) for name in LOSSES if len(having[name]) > 1]


def loss_table(results: Results, score: str) -> Table:
    """A score, mean and standard deviation, of each method and r (rows) on each data set (columns).

    The verdicts are those of the paired t-test that accuracy gets, with the sign turned.

    Parameters
    ----------
    results : Results
        What to show.
    score : str
        One of `LOSSES`.
    """
    suite = results.suite
    values = _by_split(results, score)
    all_r = list(dict.fromkeys(r for _, r in results.problems))
    several_r = len(all_r) > 1
    rows = []
    for m in suite.methods:
        for i, r in enumerate(all_r):
            entries = [_entry(values, (d, r), m.name, suite.reference) for d in suite.dataset_labels]
            named = [Entry(m.name if i == 0 else ""), *([Entry("" if r is None else str(r))] if several_r else [])]
            rows.append(Row([*named, *entries], rule=i == 0))
    return Table(
        caption=f"{SCORES[score].heading[0].upper()}{SCORES[score].heading[1:]} (mean±std): {SCORES[score].meaning}.",
        header=["Algorithm", *(["r"] if several_r else []), *suite.dataset_labels],
        rows=rows,
        names=2 if several_r else 1,
        legend=f"•/◦: {suite.reference} is statistically superior/inferior, that is smaller/larger "
        "(paired t-test, 0.05 level); ?: fewer than two splits in common.",
        best="mean",
        notes=results.notes(),
    )


def _by_split(results: Results, score: str) -> dict[Problem, dict[str, dict[int, float]]]:
    """The score by problem, method and split, where it is known."""
    values: dict[Problem, dict[str, dict[int, float]]] = {}
    for place, record in results.done.items():
        value = record.outcome.scores.get(score, math.nan)
        if not math.isnan(value):
            values.setdefault((place.dataset, place.r), {}).setdefault(place.method, {})[place.split] = value
    return values


def _entry(values: dict[Problem, dict[str, dict[int, float]]], problem: Problem, method: str, reference: str) -> Entry:
    methods = values.get(problem, {})
    if method not in methods:
        return Entry(None)
    found = spread(methods[method].values())
    best = min(spread(by_split.values()).mean for by_split in methods.values())
    ours, theirs = ({s: -v for s, v in methods.get(name, {}).items()} for name in (reference, method))
    verdict = "tie" if method == reference else compare(ours, theirs).verdict
    return Entry(
        found.mean,
        found.std,
        bold=f"{found.mean:.3f}" == f"{best:.3f}",
        marker="" if verdict == "tie" else verdict,
    )
