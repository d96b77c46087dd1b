"""The paper's tables, as plain structures; `mipl.bench.render` writes them down."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from mipl.bench.published import published
from mipl.bench.results import Results, Summary
from mipl.bench.suite_entries import MethodEntry

__all__ = ["Entry", "Row", "Table", "accuracy_table", "cost_table", "tidy_table", "win_tie_loss", "win_tie_loss_table"]


@dataclass(frozen=True)
class Entry:
    """A cell of a table; `marker` is the reference's verdict over it, shown where it is a win or a loss."""

    text: str
    bold: bool = False
    marker: Literal["", "win", "loss", "unconfirmed"] = ""


@dataclass(frozen=True)
class Row:
    """A row, or with a single entry a heading over all columns; `rule` draws a line above it."""

    entries: list[Entry]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """Column names and rows; `names` says how many columns at the left name the row."""

    caption: str
    header: list[str]
    rows: list[Row]
    names: int = 1
    notes: list[str] = field(default_factory=list)


def accuracy_table(results: Results, with_published: bool = False) -> Table:
    """Accuracy, mean and standard deviation, of each method and r (rows) on each data set (columns), as Table 2."""
    suite, summaries = results.suite, results.summaries
    all_r = _all_r(results)
    best = _best(results)
    labels = suite.dataset_labels
    rows: list[Row] = []
    group = ""
    for m in suite.methods:
        if m.group != group:
            group = m.group
            rows.append(Row([Entry(group)], rule=True))
        theirs = _published_rows(results, m, all_r) if with_published else {}
        for i, r in enumerate(all_r):
            entries = [_accuracy(summaries.get((d, r, m.name)), suite.splits, best.get((d, r))) for d in labels]
            rows.append(Row([Entry(m.label if i == 0 else ""), *_r_entry(r, all_r), *entries], rule=i == 0))
            if r in theirs:
                rows.append(Row([Entry("  published"), *_r_entry(r, all_r), *theirs[r]]))
    if with_published:
        rows += _published_only(results, all_r)
    return Table(
        caption=f"Accuracy (mean±std) over {_splits(results)}.",
        header=["Algorithm", *(["r"] if len(all_r) > 1 else []), *labels],
        rows=rows,
        names=2 if len(all_r) > 1 else 1,
        notes=_accuracy_notes(results, rows),
    )


def win_tie_loss(results: Results) -> dict[str, dict[int | None, Counter[str]]]:
    """Count verdicts of the reference against each other label, by r; the key None of the inner level is the total.

    Methods of the same label in different groups (Mean and MaxMin) are counted together, as in the paper's Table 3.
    """
    label = {m.name: m.label for m in results.suite.methods}
    counts: dict[str, dict[int | None, Counter[str]]] = {}
    for m in results.suite.methods:
        if m.name != results.suite.reference:
            counts.setdefault(m.label, {})
    for summary in results.summaries.values():
        if summary.test is None:
            continue
        by_r = counts[label[summary.method]]
        for key in {summary.r, None}:
            by_r.setdefault(key, Counter())[summary.test.verdict] += 1
    return counts


def win_tie_loss_table(results: Results) -> Table:
    """Win/tie/loss counts of the reference against each method, by r and in total, as Table 3."""
    counts = win_tie_loss(results)
    all_r = [r for r in _all_r(results) if r is not None]
    columns: list[int | None] = [*(all_r if len(all_r) > 1 else []), None]
    total = {r: sum((by_r.get(r, Counter()) for by_r in counts.values()), Counter()) for r in columns}
    rows = [
        Row([Entry(label), *(Entry(_wtl(by_r.get(r, Counter()))) for r in columns)]) for label, by_r in counts.items()
    ]
    rows.append(Row([Entry("In total"), *(Entry(_wtl(total[r]), bold=r is None) for r in columns)], rule=True))
    untested = total[None]["untested"]
    notes = results.notes()
    if untested:
        notes.insert(0, f"{untested} comparisons have fewer than two splits in common and are not counted.")
    return Table(
        caption=f"Win/tie/loss counts of {results.suite.reference} against the other methods "
        "(paired t-test, 0.05 level).",
        header=["Against", *(f"r={r}" if r is not None else "In total" for r in columns)],
        rows=rows,
        notes=notes,
    )


def cost_table(results: Results) -> Table:
    """Seconds and memory of each method on each data set, over all r and splits."""
    datasets = results.suite.dataset_labels
    rows = []
    for m in results.suite.methods:
        for i, (what, unit) in enumerate((("fit", "s"), ("predict", "s"), ("memory", "MiB"))):
            texts = [Entry(_cost(results, m, d, what)) for d in datasets]
            rows.append(Row([Entry(m.name if i == 0 else ""), Entry(f"{what} [{unit}]"), *texts], rule=i == 0))
    threads = sorted({record.outcome.threads for record in results.done.values() if record.outcome.threads})
    notes = [f"BLAS threads of a cell: {' or '.join(map(str, threads))}."] if threads else []
    return Table(
        caption="Mean seconds of fit and prediction, and the highest memory above that of the loaded data, "
        "over all r and splits.",
        header=["Algorithm", "", *datasets],
        rows=rows,
        names=2,
        notes=[*notes, *results.notes()],
    )


def tidy_table(results: Results) -> Table:
    """One row for each method, data set and r with all that is known of it: for CSV files and data frames."""
    figures = published(results.suite.train_size)
    entry = {m.name: m for m in results.suite.methods}
    load = {d.label: d.load for d in results.suite.datasets}
    header = ["dataset", "r", "method", "group", "n", "mean", "std", "verdict", "p", "fit_seconds", "predict_seconds",
              "memory_mib", "published_mean", "published_std", "published_source"]  # fmt: skip
    rows = []
    for s in results.summaries.values():
        m = entry[s.method]
        theirs = figures.get((m.label, m.group, load[s.dataset], s.r))
        test = (s.test.verdict, s.test.p) if s.test else (None, None)
        beside = (theirs.mean, theirs.std, theirs.source) if theirs else (None, None, None)
        values = [s.dataset, s.r, m.label, m.group, s.n, s.mean, s.std, *test, s.fit_seconds, s.predict_seconds,
                  s.memory_mib, *beside]  # fmt: skip
        rows.append(Row([Entry(_plain(value)) for value in values]))
    return Table(caption="", header=header, rows=rows)


# -------------------------------------------------------------------- pieces


def _plain(value: object) -> str:
    if value is None or value != value:  # missing or NaN
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _all_r(results: Results) -> list[int | None]:
    return list(dict.fromkeys(r for _, r in results.problems))


def _r_entry(r: int | None, all_r: list[int | None]) -> list[Entry]:
    return [Entry("" if r is None else str(r))] if len(all_r) > 1 else []


def _best(results: Results) -> dict[tuple[str, int | None], str]:
    """The best mean of each problem, as it is printed: what prints alike is equally good."""
    best: dict[tuple[str, int | None], float] = {}
    for s in results.summaries.values():
        best[s.dataset, s.r] = max(best.get((s.dataset, s.r), 0.0), s.mean)
    return {key: f"{value:.3f}" for key, value in best.items()}


def _accuracy(summary: Summary | None, splits: int, best: str | None) -> Entry:
    if summary is None:
        return Entry("–")
    text = _pm(summary.mean, summary.std)
    if summary.n < splits:
        text += f" ({summary.n})"
    verdict = summary.test.verdict if summary.test else ""
    return Entry(
        text + ("?" if verdict == "untested" else ""),
        bold=f"{summary.mean:.3f}" == best,
        marker=verdict if verdict in ("win", "loss") else "",
    )


def _accuracy_notes(results: Results, rows: list[Row]) -> list[str]:
    entries = [entry for row in rows for entry in row.entries]
    name = results.suite.reference
    notes = [f"•/◦: {name} is statistically superior/inferior (paired t-test, 0.05 level). The best mean is in bold."]
    if any(" (" in e.text for e in entries[1:]):
        notes.append(f"In parentheses: splits that have finished where they are fewer than {results.suite.splits}.")
    if any(e.text.endswith("?") for e in entries):
        notes.append(f"?: not tested, fewer than two splits in common with {name}.")
    if any(e.text == "–" for e in entries):
        notes.append("–: no finished split.")
    if any(e.marker == "unconfirmed" for e in entries):
        notes.append("†: as recalled, unconfirmed.")
    return [*notes, *results.notes()]


def _published_rows(results: Results, m: MethodEntry, all_r: list[int | None]) -> dict[int | None, list[Entry]]:
    """The published figures of a method by r, one for each data set; an r without any is missing."""
    figures = published(results.suite.train_size)
    load = {d.label: d.load for d in results.suite.datasets}
    rows = {}
    for r in all_r:
        found = [figures.get((m.label, m.group, load[label], r)) for label in results.suite.dataset_labels]
        if any(found):
            rows[r] = [
                Entry("") if f is None else Entry(_pm(f.mean, f.std), marker="" if f.confirmed else "unconfirmed")
                for f in found
            ]
    return rows


def _published_only(results: Results, all_r: list[int | None]) -> list[Row]:
    """Rows for the methods of the suite that this installation lacks."""
    rows = []
    for m in results.suite.absent:
        for i, (r, entries) in enumerate(_published_rows(results, m, all_r).items()):
            rows.append(Row([Entry(m.name if i == 0 else ""), *_r_entry(r, all_r), *entries], rule=i == 0))
    return [Row([Entry("Published only")], rule=True), *rows] if rows else []


def _pm(mean: float, std: float | None) -> str:
    return f"{mean:.3f}" if std is None or math.isnan(std) else f"{mean:.3f}±{std:.3f}"


def _wtl(counts: Counter[str]) -> str:
    return f"{counts['win']}/{counts['tie']}/{counts['loss']}"


def _splits(results: Results) -> str:
    share = round(100 * results.suite.train_size)
    count = results.suite.splits
    return f"{count} random {share}/{100 - share} split{'s' if count > 1 else ''}"


def _cost(results: Results, method: MethodEntry, dataset: str, what: str) -> str:
    found = [s for s in results.summaries.values() if s.method == method.name and s.dataset == dataset]
    if not found:
        return "–"
    if what == "memory":
        return f"{max(s.memory_mib for s in found):.0f}"
    seconds = sum(s.n * (s.fit_seconds if what == "fit" else s.predict_seconds) for s in found)
    return f"{seconds / sum(s.n for s in found):.3g}"
