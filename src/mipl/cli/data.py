"""``mipl data``: list, build and describe data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mipl.cli.assignments import parse_assignments
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.once import App
from mipl.cli.output import SUMMARY_COLUMNS, JsonOption, QuietOption, print_json, print_table, say, working

__all__ = ["app"]

app = App(help="List, build, draw and describe data sets.", no_args_is_help=True)

OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="An option of the named data set, NAME=VALUE, for example r=2; may be repeated. Default: its own.",
    ),
]


@app.command("list", epilog="Example: mipl data list --built --json")
def list_datasets(
    built: Annotated[
        bool, typer.Option("--built", help="Build each one and show it beside the paper's figures.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the data sets that can be built by name."""
    from mipl.datasets.registry import builder, dataset_names

    if built:
        _list_built(json, quiet)
        return
    about = {name: (builder(name).__doc__ or "").strip().splitlines()[0] for name in dataset_names()}
    if json:
        print_json([{"name": name, "description": text} for name, text in about.items()])
    else:
        print_table("data sets", ("name", "what it is"), about.items())


def _list_built(json: bool, quiet: bool) -> None:
    """Characteristics of every data set as built here, and those of the same name in the MIPLGP paper's Table 1."""
    from mipl.datasets import paper_characteristics
    from mipl.datasets.registry import builder, dataset_names
    from mipl.errors import DataError

    rows: list[dict[str, Any]] = []
    for name in dataset_names():
        try:
            with working(f"building {name}", quiet or json):
                rows.append({"source": "built here", **builder(name)().summary()})
        except DataError as error:
            say(f"{name} cannot be built: {str(error).splitlines()[0]}", quiet)
        paper = paper_characteristics().get(name)
        if paper is not None:
            rows.append({"source": "paper", "name": name, "candidates": None, **paper})
    if json:
        print_json(rows)
        return
    keys = ("name", "source", "bags", "instances", "max", "min", "dims", "classes", "positive")
    print_table(
        "data sets as built, and as the paper has them",
        (*keys[:-1], "positive %"),
        [[row[k] for k in keys] for row in rows],
    )


@app.command(epilog="Example: mipl data build digits --r 2 --seed 1 --out digits.parquet")
def build(
    name: Annotated[str, typer.Argument(help="Name of a data set; 'mipl data list' shows them.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write: .parquet, .feather, .jsonl, .csv, .npz or .mat.")
    ],
    r: Annotated[
        int | None, typer.Option("--r", help="False positive labels per bag, where they are drawn. Default: 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the random choices. Default: 0.")] = None,
    json: JsonOption = False,
    option: OptionOption = None,
    quiet: QuietOption = False,
) -> None:
    """Build a data set and write it to a file."""
    from mipl.datasets.registry import builder
    from mipl.io import SUFFIXES, write
    from mipl.io.atomic import check_writable
    from mipl.loading import load
    from mipl.overwriting import refuse_overwriting

    builder(name)  # a file is not built
    check_writable(out, SUFFIXES)
    refuse_overwriting([out], sources=[name])
    with working(f"building {name}", quiet or json):
        given = {key: value for key, value in (("r", r), ("seed", seed)) if value is not None}
        dataset = load(name, **{**given, **parse_assignments(option)})
        write(dataset, out)
    _show(dataset.summary(), json, quiet)
    say(f"written to {out}", quiet or json)


@app.command(epilog="Example: mipl data show photos/ --patch 16 --bags 4 --out photos.png")
@reads_files
def show(
    file: FilesArgument,
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="Picture to write: .png, .svg or .pdf.")],
    bags: Annotated[int, typer.Option("--bags", help="How many bags to draw.")] = 6,
    option: OptionOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw some bags with their candidate labels, the true one marked."""
    from mipl.io.atomic import check_writable
    from mipl.plotting.dataset import PICTURES, draw

    check_writable(out, PICTURES)
    reading.refuse_overwriting(file, [out])
    dataset = reading.load(file, quiet or json, **parse_assignments(option)).dataset
    with working("drawing", quiet or json):
        draw(dataset, out, n_bags=bags)
    if json:
        print_json({"picture": str(out), "bags": min(bags, len(dataset))})
    say(f"written to {out}", quiet or json)


@app.command(epilog="Example: mipl data info birds.csv --bag recording --candidates species")
@reads_files
def info(
    file: FilesArgument,
    reading: Reading,
    option: OptionOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Describe a data set in the columns of the MIPLGP paper's table; 'mipl check' looks for problems."""
    _show(reading.load(file, quiet or json, **parse_assignments(option)).dataset.summary(), json, quiet=False)


def _show(summary: dict[str, Any], json: bool, quiet: bool) -> None:
    if json:
        print_json(summary)
    elif not quiet:
        more = list(summary)[len(SUMMARY_COLUMNS) :]  # what only some data sets have: weights, a background class
        print_table("", (*SUMMARY_COLUMNS, *more), [list(summary.values())])
