"""``mipl explain``: what a saved model sees in the bags of a file, down to the instance behind each label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.answers import InstancesOption, ModelArgument, RawOption, hand_over, stream_answers, write_report
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, say, working

__all__ = ["explain"]

_PAGE = ".html"


@reads_files
def explain(
    model: ModelArgument,
    file: FilesArgument,
    reading: Reading,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File for all answers: .csv, .parquet, .jsonl, .xlsx, or a page .html; - is standard output (CSV). "
            "Default: print the first bags.",
        ),
    ] = None,
    instances: InstancesOption = None,
    raw: RawOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Label every bag among all classes of the model, and name the instance that the label comes from."""
    from mipl.io.atomic import check_writable, is_stream
    from mipl.io.tables import TABLE_SUFFIXES, check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import explain as explain_bags
    from mipl.scanning.chunks import is_large

    as_page = out is not None and out.suffix.lower() == _PAGE
    if out is not None:
        check_writable(out, () if is_stream(out) else (*TABLE_SUFFIXES, _PAGE))
    for path in (None if as_page else out, instances):
        if path is not None:
            check_table_path(path)
    reading.refuse_overwriting(file, [out, instances], model)
    if out is not None and not as_page and not json and is_large(file):
        stream_answers(model, file, reading, str(out), instances=instances, quiet=quiet, raw=raw, evidence=True)
        return
    loaded = load_model(model)
    data = reading.for_model(loaded, quiet or json).load(file, quiet or json, unlabelled=loaded.classes_.tolist())
    with working(f"explaining {len(data.dataset):,} bags", quiet or json):
        found = replace(explain_bags(loaded, data.dataset), instance_ids=data.instance_ids)
    if instances is not None:
        found.save_instances(instances, raw=raw)
    if out is not None and as_page:
        say(found.verdict, quiet or json)
        write_report(found, out, data=file, model=loaded, quiet=quiet or json)
    if json or not as_page:
        hand_over(found, found.rows() if json else None, None if as_page else out, quiet, raw)
