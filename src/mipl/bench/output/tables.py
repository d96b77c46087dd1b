"""The tables of a suite's results, as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from mipl.bench.analysis.published import Published, published
from mipl.bench.analysis.results import Results, Summary
from mipl.bench.output.table import Entry, Row, Table
from mipl.bench.suite.entries import MethodEntry
from mipl.bench.suite.scores import SCORES
from mipl.errors import ParameterError

__all__ = [
    "KINDS",
    "accuracy_table",
    "cost_table",
    "default_kind",
    "scores_table",
    "table_of",
    "tidy_table",
    "win_tie_loss_table",
]

KINDS = ("accuracy", "scores", "wins", "cost")


def default_kind(results: Results) -> str:
    """The table that suits a suite: of one method all scores, of several their accuracies side by side."""
    return "accuracy" if len(results.suite.methods) > 1 else "scores"


def table_of(results: Results, kind: str, *, with_published: bool = False, tidy: bool = False) -> Table:
    """Make a table.

    Parameters
    ----------
    results : Results
        What to show.
    kind : {"accuracy", "scores", "wins", "cost"}
        Which table.
    with_published : bool, default=False
        Put published accuracies below ours.
    tidy : bool, default=False
        For programs: everything but the counts of wins becomes one row per method, data set and r.
    """
    if kind not in KINDS:
        raise ParameterError(f"unknown kind {kind!r}; use one of {', '.join(KINDS)}")
    if kind == "wins":
        return win_tie_loss_table(results)
    if tidy:
        return tidy_table(results)
    if kind == "accuracy":
        return accuracy_table(results, with_published)
    return scores_table(results) if kind == "scores" else cost_table(results)


def accuracy_table(results: Results, with_published: bool = False) -> Table:
    """Accuracy, mean and standard deviation, of each method and r (rows) on each data set (columns), as Table 2."""
    suite, summaries = results.suite, results.summaries
    lines = _lines(results)
    best = _best(results)
    labels = suite.dataset_labels
    not_run = _not_run(results)
    rows: list[Row] = []
    group = ""
    for m in suite.methods:
        if m.group != group:
            group = m.group
            rows.append(Row([Entry(group)], rule=True))
        theirs = _published_rows(results, m, lines) if with_published else {}
        if m.name in not_run and not theirs:
            continue
        for i, (r, r_of) in enumerate(lines.items()):
            found = {d: (summaries.get((d, r_of[d], m.name)), best.get((d, r_of[d]))) for d in r_of}
            entries = [_accuracy(found[d][0], suite.splits, found[d][1]) if d in found else Entry("") for d in labels]
            rows.append(Row([Entry(m.label if i == 0 else ""), *_r_entry(r, lines), *entries], rule=i == 0))
            if r in theirs:
                rows.append(Row([Entry("  published"), *_r_entry(r, lines), *theirs[r]]))
    if with_published:
        rows += _published_only(results, lines)
    return Table(
        caption=f"Accuracy (mean±std) over {_splits(results)}.",
        header=["Algorithm", *(["r"] if len(lines) > 1 else []), *labels],
        rows=rows,
        names=2 if len(lines) > 1 else 1,
        legend=f"•/◦: {suite.reference} is statistically superior/inferior (paired t-test, 0.05 level).",
        best="mean",
        notes=[*_notes(results, rows), *results.notes()],
    )


def scores_table(results: Results) -> Table:
    """All scores that the suite asks for, one row for each data set, r and method, and the processor time of a fit."""
    suite = results.suite
    several_methods, all_r = len(suite.methods) > 1, _all_r(results)
    # Accuracy has columns of its own, and needs no legend.
    others = [name for name in suite.scores if name != "accuracy"]
    rows: list[Row] = []
    for dataset, r in results.problems:
        found = [results.summaries.get((dataset, r, m.name)) for m in suite.methods]
        for i, s in enumerate(summary for summary in found if summary is not None):
            named = [Entry(dataset), *_r_entry(r, all_r), *([Entry(s.method)] if several_methods else [])]
            accuracy = [Entry(s.accuracy.mean, s.accuracy.std), Entry(s.accuracy.lowest)]
            scores = [_score(s, name) for name in others]
            rows.append(Row([*named, Entry(s.n), *accuracy, *scores, _known(s.fit_cpu_seconds, ".0f")], rule=i == 0))
    names = ["data", *(["r"] if len(all_r) > 1 else []), *(["method"] if several_methods else [])]
    return Table(
        caption=f"Scores of {', '.join(m.name for m in suite.methods)}: means over {_splits(results)}.",
        header=[*names, "splits", "accuracy", "worst", *(SCORES[name].heading for name in others), "CPU s"],
        rows=rows,
        names=len(names),
        legend="; ".join(f"{SCORES[name].heading}: {SCORES[name].meaning}" for name in others),
        notes=[*_score_notes(rows), *results.notes()],
    )


def win_tie_loss_table(results: Results) -> Table:
    """Win/tie/loss counts of the reference against each method, by r and in total, as Table 3.

    Where there are published counts, the total is that of the methods that have them, and the others stand below it.
    """
    compared = results.win_tie_loss()
    # A method that has not been run has no counts; where none has, all are listed.
    counts = {m: by_r for m, by_r in compared.items() if any(c.total() for c in by_r.values())} or compared
    all_r = [r for r in _all_r(results) if r is not None]
    columns: list[int | None] = [*(all_r if len(all_r) > 1 else []), None]
    theirs = _published_counts(results)
    summed = [label for label in counts if label in theirs] if theirs else list(counts)
    beside = [label for label in counts if label not in summed]

    def row(
        label: str, by_r: dict[int | None, Counter[str]], published_counts: Counter[str] | None, *, total: bool = False
    ) -> Row:
        ours = [_counts(by_r.get(r, Counter()), bold=total and r is None) for r in columns]
        last = [Entry("") if published_counts is None else _counts(published_counts)] if theirs else []
        return Row([Entry(label), *ours, *last], rule=total)

    rows = [row(label, counts[label], theirs.get(label)) for label in summed]
    total = {r: sum((counts[label].get(r, Counter()) for label in summed), Counter()) for r in columns}
    rows.append(row("In total", total, sum((theirs.get(label, Counter()) for label in summed), Counter()), total=True))
    if beside:
        rows.append(Row([Entry("Without published counts")], rule=True))
        rows += [row(label, counts[label], None) for label in beside]
    untested = sum(by_r.get(None, Counter())["untested"] for by_r in counts.values())
    notes = results.notes()
    if untested:
        notes.insert(0, f"Not counted, with fewer than three splits in common: {untested}.")
    header = ["Against", *(f"r={r}" if r is not None else "In total" for r in columns)]
    return Table(
        caption=f"Win/tie/loss counts of {results.suite.reference} against the other methods "
        "(paired t-test, 0.05 level).",
        header=[*header, "published"] if theirs else header,
        rows=rows,
        notes=notes,
    )


def cost_table(results: Results) -> Table:
    """Seconds and memory of each method on each data set, over all r and splits."""
    datasets = results.suite.dataset_labels
    rows = []
    not_run = _not_run(results)
    for m in results.suite.methods:
        if m.name in not_run:
            continue
        for i, (what, unit) in enumerate((("fit", "s"), ("predict", "s"), ("memory", "MiB"))):
            costs = [_cost(results, m, d, what) for d in datasets]
            rows.append(Row([Entry(m.name if i == 0 else ""), Entry(f"{what} [{unit}]"), *costs], rule=i == 0))
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
    entry = {m.name: m for m in results.suite.methods}
    others = [name for name in results.suite.scores if name != "accuracy"]
    header = ["dataset", "r", "method", "group", "n", "mean", "std", "verdict", "p", "fit_seconds", "predict_seconds",
              "memory_mib", "published_mean", "published_std", "published_source", "fit_cpu_seconds",
              *(f"{name}_{part}" for name in others for part in ("mean", "std"))]  # fmt: skip
    rows = []
    for s in results.summaries.values():
        m = entry[s.method]
        theirs = _published(results, m, s.dataset, s.r)
        test = (s.test.verdict, s.test.p) if s.test else (None, None)
        beside = (theirs.mean, theirs.std, theirs.source) if theirs else (None, None, None)
        scores = [value for name in others for value in _mean_and_std(s, name)]
        values = [s.dataset, s.r, m.label, m.group, s.n, s.accuracy.mean, s.accuracy.std, *test, s.fit_seconds,
                  s.predict_seconds, s.memory_mib, *beside, s.fit_cpu_seconds, *scores]  # fmt: skip
        rows.append(Row([Entry(None if value is None or value != value else value, form=".6g") for value in values]))
    return Table(caption="", header=header, rows=rows)


# -------------------------------------------------------------------- pieces


def _all_r(results: Results) -> list[int | None]:
    return list(dict.fromkeys(r for _, r in results.problems))


def _lines(results: Results) -> dict[int | None, dict[str, int | None]]:
    """The rows of each method by what stands under r, with the r of each data set that has a figure there.

    Files have no r. Beside data sets of a single r they need no row of their own, and no r is written.
    """
    problems = results.problems
    if len({r for _, r in problems if r is not None}) <= 1 and len(dict(problems)) == len(problems):
        return {None: dict(problems)}
    return {r: {dataset: r for dataset, own in problems if own == r} for r in _all_r(results)}


def _not_run(results: Results) -> list[str]:
    """The methods without any result, where others have one: a row of dashes tells nothing."""
    found = {method for _, _, method in results.summaries}
    return [m.name for m in results.suite.methods if m.name not in found] if found else []


def _r_entry(r: int | None, all_r: Collection[int | None]) -> list[Entry]:
    return [Entry("" if r is None else str(r))] if len(all_r) > 1 else []


def _best(results: Results) -> dict[tuple[str, int | None], str]:
    """The best mean of each problem, as it is printed: what prints alike is equally good."""
    best: dict[tuple[str, int | None], float] = {}
    for s in results.summaries.values():
        best[s.dataset, s.r] = max(best.get((s.dataset, s.r), 0.0), s.accuracy.mean)
    return {key: f"{value:.3f}" for key, value in best.items()}


def _accuracy(summary: Summary | None, splits: int, best: str | None) -> Entry:
    if summary is None:
        return Entry(None)
    verdict = summary.test.verdict if summary.test else ""
    return Entry(
        summary.accuracy.mean,
        summary.accuracy.std,
        count=summary.n if summary.n < splits else None,
        bold=f"{summary.accuracy.mean:.3f}" == best,
        marker="" if verdict == "tie" else verdict,
    )


def _score(summary: Summary, name: str) -> Entry:
    """The mean of a score: a dash where no split has it, nothing where it is not defined."""
    if name not in summary.scores:
        return Entry(None)
    known = summary.scores[name]
    if known.n == 0:
        return Entry("")
    return Entry(known.mean, count=known.n if known.n < summary.n else None)


def _mean_and_std(summary: Summary, name: str) -> tuple[float | None, float | None]:
    known = summary.scores.get(name)
    return (known.mean, known.std) if known else (None, None)


def _known(value: float, form: str) -> Entry:
    return Entry(None if math.isnan(value) else value, form=form)


def _notes(results: Results, rows: list[Row]) -> list[str]:
    """Explain what the entries of an accuracy table show."""
    entries = [entry for row in rows for entry in row.entries]
    not_run = _not_run(results)
    notes = [f"Not run: {', '.join(not_run)}."] if not_run else []
    if any(e.count is not None for e in entries):
        notes.append(f"In parentheses: splits that have finished where they are fewer than {results.suite.splits}.")
    if any(e.marker == "untested" for e in entries):
        notes.append(f"?: not tested, fewer than three splits in common with {results.suite.reference}.")
    if any(e.value is None for e in entries):
        notes.append("–: no finished split.")
    if any(e.marker == "unconfirmed" for e in entries):
        notes.append("†: as recalled, unconfirmed.")
    return notes


def _score_notes(rows: list[Row]) -> list[str]:
    entries = [entry for row in rows for entry in row.entries]
    notes = []
    if any(e.count is not None for e in entries):
        notes.append("In parentheses: splits that have the score, where not all have it.")
    if any(e.value is None for e in entries):
        notes.append("–: not computed.")
    if any(e.value == "" for e in entries):
        notes.append("Empty: not defined, as the average precision of instances (AP) where their labels are not known.")
    return notes


def _published(results: Results, m: MethodEntry, label: str, r: int | None) -> Published | None:
    """The published figure of a method on a data set by its label, for splits of the same share."""
    dataset = next(d for d in results.suite.datasets if d.label == label)
    return published(results.suite.train_size_of(dataset)).get((m.label, m.group, dataset.load, r))


def _published_rows(
    results: Results, m: MethodEntry, lines: dict[int | None, dict[str, int | None]]
) -> dict[int | None, list[Entry]]:
    """The published figures of a method by r, one for each data set; an r without any is missing."""
    rows = {}
    for r, r_of in lines.items():
        found = [_published(results, m, label, r_of.get(label)) for label in results.suite.dataset_labels]
        if any(found):
            rows[r] = [
                Entry("") if f is None else Entry(f.mean, f.std, marker="" if f.confirmed else "unconfirmed")
                for f in found
            ]
    return rows


def _published_only(results: Results, lines: dict[int | None, dict[str, int | None]]) -> list[Row]:
    """Rows for the methods of the suite that this installation lacks."""
    rows = []
    for m in results.suite.absent:
        for i, (r, entries) in enumerate(_published_rows(results, m, lines).items()):
            rows.append(Row([Entry(m.name if i == 0 else ""), *_r_entry(r, lines), *entries], rule=i == 0))
    return [Row([Entry("Published only")], rule=True), *rows] if rows else []


def _published_counts(results: Results) -> dict[str, Counter[str]]:
    """The published counts against each label that has any, on this suite's data sets and r."""
    reference = next(m for m in results.suite.methods if m.name == results.suite.reference)
    if reference.method != "MIPLGP":  # the only one whose tests are published
        return {}
    found: dict[str, Counter[str]] = {}
    for m in results.suite.methods:
        if m.name != reference.name:
            figures = (_published(results, m, dataset, r) for dataset, r in results.problems)
            verdicts = [figure.outcome for figure in figures if figure is not None and figure.outcome]
            found.setdefault(m.label, Counter()).update(verdicts)
    return {label: counted for label, counted in found.items() if counted}


def _counts(counts: Counter[str], bold: bool = False) -> Entry:
    return Entry((counts["win"], counts["tie"], counts["loss"]), bold=bold)


def _splits(results: Results) -> str:
    """Say what the splits are, for a caption."""
    suite = results.suite
    shares = {suite.train_size_of(d) for d in suite.datasets}
    share = round(100 * shares.pop()) if len(shares) == 1 else None
    kind = "random" if share is None else f"random {share}/{100 - share}"
    bags = " of bags drawn anew" if suite.draw == "per-split" else ""
    return f"{suite.splits} {kind} split{'s' if suite.splits > 1 else ''}{bags}"


def _cost(results: Results, method: MethodEntry, dataset: str, what: str) -> Entry:
    found = [s for s in results.summaries.values() if s.method == method.name and s.dataset == dataset]
    if what == "memory":
        known = [s.memory_mib for s in found if not math.isnan(s.memory_mib)]
        return Entry(max(known, default=None), form=".0f")
    seconds = [(s.n, s.fit_seconds if what == "fit" else s.predict_seconds) for s in found]
    measured = [(n, mean) for n, mean in seconds if not math.isnan(mean)]
    if not measured:
        return Entry(None)
    mean_of_all = sum(n * mean for n, mean in measured) / sum(n for n, _ in measured)
    return Entry(mean_of_all, form=".3g" if mean_of_all < 999.5 else ".0f")  # no 3.45e+03
