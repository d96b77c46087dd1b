"""``mipl resolve``: the most probable label of every ambiguously labelled bag, and the instance behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.answers import InstancesOption, OutOption, RawOption, hand_over, print_next, write_report
from mipl.cli.decisions import DecisionsOption, decided
from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, ParamOption, fit_method
from mipl.cli.files import BackgroundOption, FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, working

__all__ = ["resolve"]


@reads_files
def resolve(
    file: FilesArgument,
    reading: Reading,
    out: OutOption = None,
    instances: InstancesOption = None,
    next_: Annotated[
        int | None,
        typer.Option(
            "--next",
            min=1,
            help="Print so many bags whose label would teach most, best first. Default: print the answers.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Page to look at and to correct: .html. Default: none.")
    ] = None,
    background: BackgroundOption = None,
    decisions: DecisionsOption = None,
    model: Annotated[Path | None, typer.Option("--model", help="Use this saved model. Default: fit one.")] = None,
    method: MethodOption = DEFAULT_METHOD,
    param: ParamOption = None,
    raw: RawOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Give every bag its most probable candidate, with a probability and the instance that carries the evidence."""
    from mipl.errors import ParameterError
    from mipl.io.atomic import check_writable
    from mipl.io.tables import check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import resolve as resolve_dataset

    for path in (out, instances):
        if path is not None:
            check_table_path(path)
    if report is not None:
        check_writable(report, (".html",))
    reading.refuse_overwriting(file, [out, instances, report], decisions, model)
    if model is not None and background is not None:
        raise ParameterError("--background is for fitting; a saved model has its own background class")
    saved = None if model is None else load_model(model)
    reading = reading if saved is None else reading.for_model(saved, quiet or json)
    data = reading.load(file, quiet or json, background=background)
    dataset, taken = decided(data.dataset, decisions, quiet or json)
    fitted = fit_method(dataset, method, param, quiet or json)[0] if saved is None else saved
    with working(f"resolving {len(dataset):,} bags", quiet or json):
        found = replace(resolve_dataset(dataset, fitted), instance_ids=data.ids_of(dataset))
    if instances is not None:
        found.save_instances(instances, raw=raw)
    if next_ is None:
        hand_over(found, found.rows() if json else None, out, quiet, raw)
    else:
        if out is not None:
            found.save(out, raw=raw)
        print_next(found, next_, json, quiet)
    if report is not None:
        write_report(found, report, data=file, model=fitted, quiet=quiet or json, decisions=taken)
