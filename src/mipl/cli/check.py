"""``mipl check``: everything that is wrong or odd in files, before anything is fitted."""

from __future__ import annotations

import typer

from mipl.cli.files import BackgroundOption, FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, print_json, print_lines, print_table, say, working

__all__ = ["check"]


@reads_files
def check(
    file: FilesArgument,
    reading: Reading,
    background: BackgroundOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List all problems of a data set at once, each with what mends it; exit code 1 if they stop a fit."""
    from mipl.checking import check as check_source

    with working("checking", quiet or json):
        report = check_source(file, background=background, **reading.given())
    if json:
        print_json(report.to_dict())
    else:
        for remark in report.remarks:
            say(remark, quiet)
        for problem in report.problems:
            print_lines(f"{problem.severity}: {problem}")
        if report.summary.get("candidate_of") and not quiet:
            print_table(
                "", ("class", "candidate of bags"), sorted(report.summary["candidate_of"].items(), key=lambda e: -e[1])
            )
            sizes = ", ".join(
                f"{k}: {n:,} bag{'s' if n > 1 else ''}" for k, n in report.summary["candidate_sizes"].items()
            )
            print_lines(f"candidates per bag: {sizes}")
        print_lines(report.verdict)
    if not report.usable:
        raise typer.Exit(1)
