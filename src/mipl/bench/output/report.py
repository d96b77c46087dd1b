"""One page of results, made from a store: tables beside the published figures, the cost, and the figures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mipl.bench.analysis.results import Results
from mipl.bench.output.figures import KINDS, draw
from mipl.bench.output.loss_tables import loss_tables
from mipl.bench.output.render import plain_markdown, render
from mipl.bench.output.table import Table
from mipl.bench.output.tables import accuracy_table, cost_table, scores_table, win_tie_loss_table
from mipl.bench.store.csv_file import write_csv
from mipl.bench.store.store import Store
from mipl.bench.store.transfer import is_csv, read_records
from mipl.bench.suite.suite import Suite
from mipl.errors import DataError
from mipl.io.atomic import atomic_path
from mipl.io.border import border

__all__ = ["report_files", "write_report"]

_MACHINES = "a list of the machines of runs"


def write_report(suites: Sequence[Suite], store: str | Path, page: Path, folder: Path) -> list[Path]:
    """Write ``folder/results.csv``, if that is not the store, and the page with its figures beside it; give the files.

    The page is made anew each time. What a person has to say of the results stands in ``folder/discussion.md`` and
    is put at its top. Given the CSV as the store, the same page comes out.

    Parameters
    ----------
    suites : sequence of Suite
        A chapter each.
    store : str or Path
        A store or a CSV export.
    page : Path
        The page to write.
    folder : Path
        Where the CSV export and discussion.md are.
    """
    for directory in (page.parent, folder):
        directory.mkdir(parents=True, exist_ok=True)
    records = read_records(store)
    written = [] if _is_export(store, folder) else [write_csv(records, folder / "results.csv")]
    discussion = folder / "discussion.md"
    names = " ".join(suite.name for suite in suites)
    splits = {suite.splits for suite in suites}
    options = f" --splits {splits.pop()}" if len(splits) == 1 else ""
    lines = [
        "# Results",
        "",
        f"Made by `mipl bench report {names} --store {folder / 'results.csv'}{options}`; do not edit by hand.",
        "",
        *([discussion.read_text(encoding="utf-8").strip(), ""] if discussion.is_file() else []),
        *_environment(store, folder),
    ]
    for suite in suites:
        results = Results(suite, records)
        if not results.done:
            raise DataError(f"suite {suite.name}: no cell has finished, so there is nothing to report")
        lines += [plain_markdown(f"## {suite.title or suite.name}"), "", *map(plain_markdown, _coverage(results))]
        for table in _tables(results):
            lines += [render(table, "markdown")]
        for kind, alt in _figures(results).items():
            file = _figure(page, suite, kind)
            written += draw(results, kind, [file])
            lines += [f"![{alt}]({file.name})", ""]
    with atomic_path(page) as temporary:
        temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return [*written, page]


def report_files(suites: Sequence[Suite], store: str | Path, page: Path, folder: Path) -> list[Path]:
    """The files that `write_report` may write."""
    figures = {_figure(page, suite, kind) for suite in suites for kind in KINDS}
    export = [] if _is_export(store, folder) else [folder / "results.csv"]
    return [page, *sorted(figures), *export, folder / "environment.json"]


def _figure(page: Path, suite: Suite, kind: str) -> Path:
    return page.with_name(f"{page.stem}-{suite.name}-{kind}.svg")


def _is_export(store: str | Path, folder: Path) -> bool:
    """Whether the results come from the file that they would be exported to."""
    export = folder / "results.csv"
    return export.exists() and Path(store).exists() and export.samefile(store)


def _tables(results: Results) -> list[Table]:
    """The tables that suit a suite: of one method all scores, of several a comparison."""
    if len(results.suite.methods) == 1:
        return [scores_table(results), cost_table(results)]
    compared = [accuracy_table(results, with_published=True), win_tie_loss_table(results)]
    return [*compared, *loss_tables(results), cost_table(results)]


def _environment(store: str | Path, folder: Path) -> list[str]:
    """Say on which machine the runs were made; kept beside the CSV, which does not hold it."""
    file = folder / "environment.json"
    if not is_csv(store):
        with Store(store, create=False) as opened:
            environments = list(opened.environments().values())
        for environment in environments:
            environment.pop("command", None)
        if {} in environments and file.is_file():  # runs that were imported from a CSV
            environments = _read_environments(file) + environments
        unique = [e for i, e in enumerate(environments) if e and e not in environments[:i]]
        with atomic_path(file) as temporary:
            temporary.write_text(json.dumps(unique, indent=2) + "\n", encoding="utf-8")
    if not file.is_file():
        return []
    environments = _read_environments(file)
    with border(str(file), _MACHINES):
        newest, processors = environments[-1], max(environment["processors"] for environment in environments)
        versions = ", ".join(
            f"{name} {newest[name]}" for name in ("python", "numpy", "scikit-learn", "torch") if name in newest
        )
        told = f"Run on at most {processors} processors ({newest['platform']}) with {versions}."
    return [plain_markdown(told), ""]


def _read_environments(file: Path) -> list[dict[str, Any]]:
    with border(str(file), _MACHINES):
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return found


def _coverage(results: Results) -> list[str]:
    """Say how many splits stand behind the figures of each method."""
    finished: dict[str, list[int]] = {}
    for summary in results.summaries.values():
        finished.setdefault(summary.method, []).append(summary.n)
    words = [
        f"{name} {min(counts)}" + (f" to {max(counts)}" if max(counts) > min(counts) else "")
        for name, counts in finished.items()
    ]
    problems = len(results.problems)
    partly = [f"{name} ({len(counts)} of {problems})" for name, counts in finished.items() if len(counts) < problems]
    missing = [m.name for m in results.suite.methods if m.name not in finished]
    lines = [f"Finished splits per figure: {', '.join(words)}."]
    if partly:
        lines.append(f"Only on a part of the data sets and r: {', '.join(partly)}.")
    if missing:
        lines.append(f"Not run: {', '.join(missing)}.")
    return [*lines, ""]


def _figures(results: Results) -> dict[str, str]:
    """The figures that these results allow, with what they show."""
    several_r = len({r for _, r in results.problems if r is not None}) > 1
    if len({m.params.get("alpha_eps") for m in results.suite.methods} - {None}) > 1:
        return {"prior": "Accuracy against r for each Dirichlet prior"}
    figures = {"overview": "Accuracy of all methods at a glance"} if len(results.suite.methods) > 1 else {}
    if several_r:
        figures["r"] = "Accuracy against the number of false positive labels"
    if any(not math.isnan(s.fit_seconds) for s in results.summaries.values()):
        figures["time"] = "Accuracy against seconds to fit"
    if any(s.test is not None and s.test.verdict != "untested" for s in results.summaries.values()):
        figures["wins"] = f"{results.suite.reference} against each other method"
    return figures
