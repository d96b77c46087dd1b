"""``mipl data``: list, build and describe data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mipl.cli.output import JsonOption, QuietOption, print_json, print_table, say, working

__all__ = ["app"]

app = typer.Typer(help="List, build and describe data sets.", no_args_is_help=True)

_COLUMNS = ("name", "bags", "instances", "max", "min", "dims", "classes", "candidates", "positive %")


@app.command("list")
def list_datasets(json: JsonOption = False) -> None:
    """List the data sets that can be built by name."""
    from mipl.datasets.registry import builder, dataset_names

    about = {name: (builder(name).__doc__ or "").strip().splitlines()[0] for name in dataset_names()}
    if json:
        print_json([{"name": name, "description": text} for name, text in about.items()])
    else:
        print_table("data sets", ("name", "what it is"), about.items())


@app.command()
def build(
    name: Annotated[str, typer.Argument(help="Name of a data set; 'mipl data list' shows them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .parquet, .npz, .csv or .mat.")],
    r: Annotated[int, typer.Option("--r", help="False positive labels a bag.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random choices.")] = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build a data set and write it to a file."""
    from mipl.datasets.registry import builder
    from mipl.io import write

    with working(f"building {name}", quiet):
        dataset = builder(name)(r=r, seed=seed)
        write(dataset, out)
    _show(dataset.summary(), json, quiet)
    say(f"written to {out}", quiet or json)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="A data set file, or the name of a data set.")],
    json: JsonOption = False,
) -> None:
    """Describe a data set in the columns of the MIPLGP paper's table."""
    from mipl.loading import load

    _show(load(str(file)).summary(), json, quiet=False)


def _show(summary: dict[str, Any], json: bool, quiet: bool) -> None:
    if json:
        print_json(summary)
    elif not quiet:
        print_table("", _COLUMNS, [list(summary.values())])
