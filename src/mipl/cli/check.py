"""``mipl check``: everything that is wrong or odd in files, before anything is fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mipl.cli.files import BackgroundOption, FilesArgument, Reading, reads_files
from mipl.cli.output import (
    JsonOption,
    QuietOption,
    print_json,
    print_lines,
    print_problem,
    print_table,
    say,
    working,
)

__all__ = ["check"]

_CLASSES = 20  # that are printed


@reads_files
def check(
    file: FilesArgument,
    reading: Reading,
    background: BackgroundOption = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Check new files for this saved model. Default: for a fit.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List all problems of a data set at once, each with what mends it; exit code 1 if they stop a fit."""
    from mipl.checking import check as check_source
    from mipl.persistence import load_model

    known: dict[str, Any] = {}
    if model is not None:
        loaded: Any = load_model(model)
        reading = reading.for_model(loaded, quiet or json)
        known = {**reading.of_model, "unlabelled": loaded.classes_.tolist()}
    with working("checking", quiet or json):
        report = check_source(file, background=background, **reading.given(), **known)
    if json:
        print_json(report.to_dict())
    else:
        for remark in report.remarks:
            say(remark, quiet)
        if report.summary.get("candidate_of") and not quiet:
            _print_classes(report.summary)
        for problem in report.problems:
            print_problem(problem.severity, str(problem))
        print_lines(report.verdict)
    if not report.usable:
        raise typer.Exit(1)


def _print_classes(summary: dict[str, Any]) -> None:
    """How often each class is a candidate, and how many candidates bags have."""
    counts = sorted(summary["candidate_of"].items(), key=lambda entry: -entry[1])
    print_table("", ("class", "candidate of bags"), counts[:_CLASSES])
    if len(counts) > _CLASSES:
        print_lines(f"... and {len(counts) - _CLASSES:,} more classes; --json has all")
    sizes = ", ".join(f"{k}: {n:,} bag{'s' if n > 1 else ''}" for k, n in summary["candidate_sizes"].items())
    print_lines(f"candidates per bag: {sizes}")
