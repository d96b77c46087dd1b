"""``mipl fit``: learn a model from a data set file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.decisions import DecisionsOption, decided
from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, ParamOption, fit_method
from mipl.cli.files import BackgroundOption, FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, print_json, say

__all__ = ["fit"]


@reads_files
def fit(
    file: FilesArgument,
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    method: MethodOption = DEFAULT_METHOD,
    param: ParamOption = None,
    background: BackgroundOption = None,
    decisions: DecisionsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a method on bags with candidate labels and save the model."""
    from mipl.io.atomic import check_writable

    check_writable(out)
    dataset, _ = decided(reading.load(file, quiet or json, background=background).dataset, decisions, quiet or json)
    model, seconds = fit_method(dataset, method, param, quiet or json)
    model.save(out)
    if json:
        print_json({"method": model.name, "bags": len(dataset), "seconds": round(seconds, 3), "model": str(out)})
    say(f"{model.name}: fitted on {len(dataset):,} bags in {seconds:.2f} s, written to {out}", quiet or json)
