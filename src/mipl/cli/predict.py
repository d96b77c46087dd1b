"""``mipl predict``: classify the bags of files with a saved model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.answers import InstancesOption, ModelArgument, OutOption, RawOption, hand_over
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, say, working

__all__ = ["predict"]


@reads_files
def predict(
    model: ModelArgument,
    file: FilesArgument,
    reading: Reading,
    out: OutOption = None,
    instances: InstancesOption = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk",
            min=1,
            help="Read so many rows of Parquet or plain text at a time, for files larger than memory; needs --out, and "
            "the rows of a bag must lie together. Default: all at once.",
        ),
    ] = None,
    raw: RawOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the label of every bag, with the probability of each class; the bags need no candidates."""
    from mipl.errors import ParameterError
    from mipl.io.tables import check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import explain

    for path in (out, instances):
        if path is not None:
            check_table_path(path)
    if chunk is not None:
        if out is None or json or instances is not None:
            raise ParameterError(
                "--chunk writes to --out FILE as it reads; it goes with neither --json nor --instances"
            )
        _predict_chunks(model, file, reading, out, chunk, quiet, raw)
        return
    loaded = load_model(model)
    reading = reading.for_model(loaded)
    data = reading.load(file, quiet or json, unlabelled=loaded.classes_.tolist())
    with working(f"predicting {len(data.dataset):,} bags", quiet or json):
        found = explain(loaded, data.dataset, instances=instances is not None)
    found = replace(found, instance_ids=data.instance_ids)
    if instances is not None:
        found.save_instances(instances, raw=raw)
        found = replace(found, instance_probabilities=None)
    answer = {"bags": len(found), "accuracy": found.accuracy, "predictions": found.rows()} if json else None
    hand_over(found, answer, out, quiet, raw)


def _predict_chunks(
    model: Path, files: list[str], reading: Reading, out: Path, rows: int, quiet: bool, raw: bool
) -> None:
    """Read, predict and write one chunk after the other."""
    from collections.abc import Iterator

    import numpy as np

    from mipl.io.chunks import read_chunks
    from mipl.io.tables import Columns, write_tables
    from mipl.persistence import load_model
    from mipl.resolving import explain

    loaded = load_model(model)
    reading = reading.for_model(loaded)
    right: list[tuple[int, float]] = []
    bags = 0

    def answers() -> Iterator[Columns]:
        nonlocal bags
        for part in read_chunks(files, reading.columns(), loaded.classes_.tolist(), rows, **reading.images()):
            for remark in part.remarks:
                say(remark, quiet)
            found = explain(loaded, part.dataset, instances=False)
            if part.has_labels and found.truth is None:  # every chunk has the same columns
                found = replace(found, truth=np.full(len(found), None, dtype=object))
            if found.accuracy is not None and found.truth is not None:
                right.append((sum(label is not None for label in found.truth), found.accuracy))
            bags += len(found)
            yield found.columns()

    with working("predicting", quiet):
        write_tables(answers(), out, raw=raw)
    if right:
        share = sum(n * accuracy for n, accuracy in right) / sum(n for n, _ in right)
        say(f"accuracy against the file's labels: {share:.3f}", quiet)
    say(f"{bags:,} bags, written to {out}", quiet)
