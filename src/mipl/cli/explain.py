"""``mipl explain``: what a saved model sees in the bags of a file, down to the instance behind each label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.answers import FileArgument, ModelArgument, hand_over, write_report
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["explain"]

_PAGE = ".html"


def explain(
    model: ModelArgument,
    file: FileArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File for all answers: .csv, .jsonl or .parquet, or .html for a page; - is standard output (CSV).",
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Label every bag among all classes of the model, and name the instance that the label comes from."""
    from mipl.io.atomic import check_writable, is_stream
    from mipl.io.tables import TABLE_SUFFIXES
    from mipl.loading import load
    from mipl.persistence import load_model
    from mipl.resolving import explain as explain_bags

    if out is not None:
        check_writable(out, () if is_stream(out) else (*TABLE_SUFFIXES, _PAGE))
    loaded, dataset = load_model(model), load(file)
    with working(f"explaining {len(dataset):,} bags", quiet or json):
        found = explain_bags(loaded, dataset)
    as_page = out is not None and out.suffix.lower() == _PAGE
    if out is not None and as_page:
        write_report(found, out, data=file, model=loaded, quiet=quiet or json)
    if json or not as_page:
        hand_over(found, found.rows() if json else None, None if as_page else out, quiet)
