"""`mipl bench`: run experiments, watch them, and turn them into tables, figures and a page of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mipl.bench import Suite

app = typer.Typer(
    help="Compare methods: resumable, parallel, with the paper's tables and figures.", no_args_is_help=True
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
    list[str] | None, typer.Option("--method", help="Only this method, as tables name it; repeatable.")
]
DatasetsOption = Annotated[list[str] | None, typer.Option("--dataset", help="Only this data set; repeatable.")]
ROption = Annotated[list[int] | None, typer.Option("--r", help="Only this number of false positives; repeatable.")]
SplitsOption = Annotated[int | None, typer.Option("--splits", help="Number of random splits instead of the suite's.")]
TrainSizeOption = Annotated[float | None, typer.Option("--train-size", help="Share of training bags: 0.5 or 0.7.")]
ReferenceOption = Annotated[
    str | None, typer.Option("--reference", help="Test the others against this method instead of the suite's.")
]
DEFAULT_STORE = Path("bench.sqlite")


@app.command("run")
def run_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes; they divide the BLAS threads.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Run on the Dask cluster at this address.")
    ] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    time_limit: Annotated[float | None, typer.Option("--time-limit", help="Seconds a cell may take.")] = None,
    memory_limit: Annotated[float | None, typer.Option("--memory-limit", help="MiB a cell may hold.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed cells again.")] = False,
    any_code: Annotated[
        bool, typer.Option("--any-code", help="Keep results that another version of the code made.")
    ] = False,
    missing_scores: Annotated[
        bool, typer.Option("--missing-scores", help="Run finished cells again that lack a score of the suite.")
    ] = False,
) -> None:
    """Run what a suite still lacks; after a stop of any kind, run it again and it goes on."""
    from mipl.bench import run
    from mipl.bench.execution.display import display_for

    chosen = _suite(suite, method, dataset, r, splits, train_size)
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
            display=display_for(sys.stderr.isatty()),
        )
    except KeyboardInterrupt:
        typer.echo(f"stopped; what has finished is in {store}, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    raise typer.Exit(1 if failed else 0)


@app.command("import")
def import_command(
    source: Annotated[Path, typer.Argument(help="A store, or its .csv export, such as results/results.csv.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Add finished cells of another run to a store: go on from published results, or join what several machines did."""
    from mipl.bench.store import import_results

    typer.echo(f"{import_results(source, store)} cells added to {store}")


@app.command("status")
def status_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
) -> None:
    """Tell what is done, what runs, what failed and why, and what it cost."""
    from mipl.bench.analysis import Results
    from mipl.bench.output import status

    chosen = _suite(suite, method, dataset, r, splits, train_size)
    typer.echo(status(Results.read(chosen, store)), nl=False)


@app.command("table")
def table_command(
    suite: SuiteArgument,
    store: StoreOption = DEFAULT_STORE,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="accuracy (default), scores (default for a single method), wins (win/tie/loss counts) or cost.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex (booktabs) or csv.")] = "text",
    published: Annotated[bool, typer.Option("--published", help="The published figures below ours.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file.")] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    reference: ReferenceOption = None,
) -> None:
    """Make a table of a suite's results."""
    from mipl.bench.analysis import Results
    from mipl.bench.output import render
    from mipl.bench.output.tables import default_kind, table_of
    from mipl.io.atomic import atomic_path

    results = Results.read(_suite(suite, method, dataset, r, splits, train_size, reference), store)
    table = table_of(results, kind or default_kind(results), with_published=published, tidy=form == "csv")
    text = render(table, form)
    if out is None:
        typer.echo(text, nl=False)
    else:
        with atomic_path(out) as temporary:
            temporary.write_text(text, encoding="utf-8")


@app.command("figure")
def figure_command(
    suite: SuiteArgument,
    kind: Annotated[str, typer.Argument(help="prior, r, time, ranks or wins.")],
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[list[Path] | None, typer.Option("--out", help="A .png, .svg or .pdf file; repeatable.")] = None,
    method: MethodsOption = None,
    dataset: DatasetsOption = None,
    r: ROption = None,
    splits: SplitsOption = None,
    train_size: TrainSizeOption = None,
    reference: ReferenceOption = None,
) -> None:
    """Draw a figure: prior (accuracy against r for each alpha_eps), r, time, ranks (critical difference) or wins."""
    from mipl.bench.analysis import Results
    from mipl.bench.output import draw

    results = Results.read(_suite(suite, method, dataset, r, splits, train_size, reference), store)
    files = draw(
        results, kind, out or [Path(f"{results.suite.name}-{kind}.png"), Path(f"{results.suite.name}-{kind}.svg")]
    )
    for file in files:
        typer.echo(f"wrote {file}")


@app.command("report")
def report_command(
    suite: Annotated[list[str], typer.Argument(help="One or more suites.")],
    store: StoreOption = DEFAULT_STORE,
    page: Annotated[Path, typer.Option("--page", help="The page to write.")] = Path("docs/results.md"),
    results: Annotated[Path, typer.Option("--results", help="Folder of the CSV export and of discussion.md.")] = Path(
        "results"
    ),
    splits: SplitsOption = None,
) -> None:
    """Turn a store into results/*.csv and a page of tables and figures next to the published ones."""
    from mipl.bench.output import write_report

    for file in write_report([_suite(name, splits=splits) for name in suite], store, page, results):
        typer.echo(f"wrote {file}")


def _suite(
    name: str,
    methods: list[str] | None = None,
    datasets: list[str] | None = None,
    r: list[int] | None = None,
    splits: int | None = None,
    train_size: float | None = None,
    reference: str | None = None,
) -> Suite:
    from mipl.bench import load_suite

    if "" not in sys.path:  # a user's own method may be a module in the current folder
        sys.path.insert(0, "")
    suite = load_suite(name, notify=lambda message: typer.echo(message, err=True))
    changes = {"splits": splits, "train_size": train_size, "reference": reference}
    return suite.select(
        methods=methods or (),
        datasets=datasets or (),
        r=r or (),
        **{key: value for key, value in changes.items() if value is not None},
    )
