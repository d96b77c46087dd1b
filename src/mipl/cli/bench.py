"""`mipl bench`: run experiments, watch them, and turn them into tables, figures and a page of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipl.cli.once import App
from mipl.cli.output import JsonOption, QuietOption, print_json, print_lines, say
from mipl.stopping import exit_code

if TYPE_CHECKING:
    from mipl.bench import Suite

app = App(
    help="Compare methods: resumable, parallel, with the paper's tables and figures.",
    no_args_is_help=True,
    epilog="Example: mipl bench run quick, then mipl bench table quick",
)

SuiteArgument = Annotated[
    str,
    typer.Argument(
        help="quick, flagship, comparison, variants, successors, paper-pll, paper-mil, paper-prior, paper-newsgroups, "
        "paper-scaling, or a file."
    ),
]
StoreOption = Annotated[Path, typer.Option("--store", help="The file of results (SQLite; tables also read its .csv).")]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option("--method", help="Only this method, as tables name it; may be repeated. Default: all."),
]
DatasetsOption = Annotated[
    list[str] | None, typer.Option("--dataset", help="Only this data set; may be repeated. Default: all.")
]
ROption = Annotated[
    list[int] | None, typer.Option("--r", help="Only this number of false positives; may be repeated. Default: all.")
]
SplitsOption = Annotated[int | None, typer.Option("--splits", help="Number of random splits. Default: the suite's.")]
TrainSizeOption = Annotated[
    float | None, typer.Option("--train-size", help="Share of training bags: 0.5 or 0.7. Default: the suite's.")
]
ReferenceOption = Annotated[
    str | None, typer.Option("--reference", help="Test the others against this method. Default: the suite's.")
]
DEFAULT_STORE = Path("bench.sqlite")


@app.command("run", epilog="Example: mipl bench run comparison --method BagGP --splits 3 --jobs 2 --store b.sqlite")
def run_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; they divide the BLAS threads.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", help="Run on the Dask cluster at this address. Default: processes here."),
    ] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Seconds a cell may take. Default: no limit.")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option("--memory-limit", help="MiB a cell may hold. Default: no limit.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed cells again.")] = False,
    any_code: Annotated[
        bool, typer.Option("--any-code", help="Keep results that another version of the code made.")
    ] = False,
    missing_scores: Annotated[
        bool, typer.Option("--missing-scores", help="Run finished cells again that lack a score of the suite.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run what a suite still lacks; after a stop of any kind, run it again and it goes on."""
    from mipl.bench import run
    from mipl.bench.execution.display import SilentDisplay, display_for
    from mipl.overwriting import refuse_overwriting

    refuse_overwriting([store], [suite])
    chosen = _suite(suite, method, dataset, r, splits, train_size, quiet=quiet or json)
    try:
        failed = run(
            chosen,
            store,
            jobs=jobs,
            scheduler=scheduler,
            time_limit=time_limit,
            memory_limit=memory_limit,
            retry_failed=retry_failed,
            any_code=any_code,
            missing_scores=missing_scores,
            display=SilentDisplay() if quiet or json else display_for(sys.stderr.isatty()),
        )
    except KeyboardInterrupt as stop:
        say(f"stopped; what has finished is in {store}, and the same command goes on from there")
        raise typer.Exit(exit_code(stop)) from None
    if json:
        print_json({"suite": chosen.name, "cells": len(chosen.cells()), "failed": failed, "store": str(store)})
    raise typer.Exit(1 if failed else 0)


@app.command("import", epilog="Example: mipl bench import results/results.csv --store bench.sqlite")
def import_command(
    source: Annotated[Path, typer.Argument(help="A store, or its .csv export, such as results/results.csv.")],
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add finished cells of another run to a store: go on from published results, or join what several machines did."""
    from mipl.bench.store import import_results
    from mipl.overwriting import refuse_overwriting

    refuse_overwriting([store], [source])
    added = import_results(source, store)
    if json:
        print_json({"added": added, "store": str(store)})
    say(f"{added} cells added to {store}", quiet or json)


@app.command("status", epilog="Example: mipl bench status quick --json")
def status_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Tell what is done, what runs, what failed and why, and what it cost."""
    from mipl.bench.analysis import Results
    from mipl.bench.output import status, status_counts

    results = Results.read(_suite(suite, method, dataset, r, splits, train_size, quiet=quiet or json), store)
    if json:
        errors = {str(record.cell): record.outcome.error for record in results.failed.values()}
        print_json({"suite": results.suite.name, "methods": status_counts(results), "errors": errors})
    else:
        _print_page(status(results))


@app.command("table", epilog="Example: mipl bench table comparison --store results/results.csv --kind wins")
def table_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="accuracy, scores, wins (win/tie/loss counts) or cost. Default: accuracy, of a single method scores.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex (booktabs) or csv.")] = "text",
    published: Annotated[bool, typer.Option("--published", help="The published figures below ours.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file. Default: print.")] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    reference: ReferenceOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a table of a suite's results."""
    from mipl.bench.analysis import Results
    from mipl.bench.output import render
    from mipl.bench.output.tables import default_kind, table_of
    from mipl.io.atomic import atomic_path
    from mipl.overwriting import refuse_overwriting

    refuse_overwriting([out], [suite, store])
    chosen = _suite(suite, method, dataset, r, splits, train_size, reference, quiet or json)
    results = Results.read(chosen, store)
    kind = kind or default_kind(results)
    if out is not None or not json:
        text = render(table_of(results, kind, with_published=published, tidy=form == "csv"), form)
        if out is None:
            _print_page(text)
        else:
            with atomic_path(out) as temporary:
                temporary.write_text(text, encoding="utf-8")
            say(f"written to {out}", quiet or json)
    if json:
        table = table_of(results, kind, tidy=True)
        rows = [row.entries for row in table.rows if not row.is_heading]
        print_json([dict(zip(table.header, (entry.value for entry in entries), strict=True)) for entries in rows])


@app.command("figure", epilog="Example: mipl bench figure comparison overview --store results/results.csv --out c.svg")
def figure_command(
    suite: SuiteArgument,
    kind: Annotated[str, typer.Argument(help="overview, prior, r, time, ranks or wins.")],
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", help="A .png, .svg or .pdf file; may be repeated. Default: SUITE-KIND.png and SUITE-KIND.svg."
        ),
    ] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    reference: ReferenceOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a figure.

    overview: accuracy of all methods at a glance; prior: accuracy against r for each alpha_eps; r: accuracy against r;
    time: accuracy against seconds to fit; ranks: average ranks with a critical difference; wins: wins, ties, losses.
    """
    from mipl.bench.analysis import Results
    from mipl.bench.output import draw
    from mipl.overwriting import refuse_overwriting

    chosen = _suite(suite, method, dataset, r, splits, train_size, reference, quiet or json)
    names = out or [Path(f"{chosen.name}-{kind}{suffix}") for suffix in (".png", ".svg")]
    refuse_overwriting(names, [suite, store])
    _tell_files(draw(Results.read(chosen, store), kind, names), json, quiet)


@app.command("report", epilog="Example: mipl bench report comparison variants --store results/results.csv --splits 3")
def report_command(
    suite: Annotated[list[str], typer.Argument(help="One or more suites.")],
    store: StoreOption = DEFAULT_STORE,
    page: Annotated[Path, typer.Option("--page", help="The page to write.")] = Path("docs/results.md"),
    results: Annotated[Path, typer.Option("--results", help="Folder of the CSV export and of discussion.md.")] = Path(
        "results"
    ),
    splits: SplitsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn a store into results/*.csv and a page of tables and figures next to the published ones."""
    from mipl.bench.output import report_files, write_report
    from mipl.overwriting import refuse_overwriting

    suites = [_suite(name, splits=splits, quiet=quiet or json) for name in suite]
    refuse_overwriting(report_files(suites, store, page, results), [*suite, store, results / "discussion.md"])
    _tell_files(write_report(suites, store, page, results), json, quiet)


def _print_page(text: str) -> None:
    print_lines(*text.rstrip("\n").split("\n"))


def _tell_files(files: list[Path], json: bool, quiet: bool) -> None:
    if json:
        print_json({"files": [str(file) for file in files]})
    for file in files:
        say(f"wrote {file}", quiet or json)


def _suite(
    name: str,
    methods: list[str] | None = None,
    datasets: list[str] | None = None,
    r: list[int] | None = None,
    splits: int | None = None,
    train_size: float | None = None,
    reference: str | None = None,
    quiet: bool = False,
) -> Suite:
    from mipl.bench import load_suite

    if "" not in sys.path:  # a user's own method may be a module in the current folder
        sys.path.insert(0, "")
    suite = load_suite(name, notify=lambda message: say(message, quiet))
    changes = {"splits": splits, "train_size": train_size, "reference": reference}
    return suite.select(
        methods=methods or (),
        datasets=datasets or (),
        r=r or (),
        **{key: value for key, value in changes.items() if value is not None},
    )
