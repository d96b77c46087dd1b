"""``mipl predict``: classify the bags of files with a saved model."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipl.cli.answers import InstancesOption, ModelArgument, RawOption, hand_over, say_accuracy, stream_answers
from mipl.cli.cluster import SchedulerOption, cluster_client
from mipl.cli.files import FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, print_json, say, working

if TYPE_CHECKING:
    from mipl.prediction import Predicted

__all__ = ["predict"]


@reads_files
def predict(
    model: ModelArgument,
    file: FilesArgument,
    reading: Reading,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File for all answers: .csv, .parquet, .jsonl or .xlsx; - is standard output (CSV). A folder (one "
            "that exists, or with a / at the end) gets one file per input file; a run that was killed goes on there. "
            "Default: print the first bags.",
        ),
    ] = None,
    instances: InstancesOption = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk",
            min=1,
            help="Read so many instances of Parquet, Feather, plain text or JSON lines at a time; needs --out, and the "
            "rows of a bag must lie together. Default: files above 64 MiB in chunks of about 64 MiB.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes that predict at once, where --out is a folder.")
    ] = 1,
    scheduler: SchedulerOption = None,
    raw: RawOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the label of every bag, with the probability of each class; the bags need no candidates."""
    from mipl.errors import ParameterError
    from mipl.io.tables import check_table_path
    from mipl.persistence import load_model
    from mipl.resolving import explain
    from mipl.scanning.chunks import is_large

    into_folder = out is not None and (out.endswith("/") or Path(out).is_dir())
    if instances is not None:
        check_table_path(instances)
    if jobs > 1 and not into_folder:
        raise ParameterError("--jobs is for many files: give --out a folder, such as --out answers/")
    if scheduler is not None and (jobs > 1 or not into_folder):
        raise ParameterError("--scheduler is for many files, without --jobs: give --out a folder, such as answers/")
    if into_folder:
        if instances is not None:
            raise ParameterError("--instances goes with a single file as --out, not with a folder")
        _predict_folder(model, file, reading, Path(str(out)), chunk, (jobs, scheduler), json, quiet, raw)
        return
    if out is not None:
        check_table_path(out)
    reading.refuse_overwriting(file, [out, instances], model)
    if chunk is not None and (out is None or json):
        raise ParameterError("--chunk writes to --out FILE as it reads; it does not go with --json")
    if out is not None and not json and (chunk is not None or is_large(file)):
        stream_answers(model, file, reading, out, instances=instances, quiet=quiet, raw=raw, chunk=chunk)
        return
    loaded = load_model(model)
    reading = reading.for_model(loaded, quiet or json)
    data = reading.load(file, quiet or json, unlabelled=loaded.classes_.tolist())
    with working(f"predicting {len(data.dataset):,} bags", quiet or json):
        found = explain(loaded, data.dataset, instances=instances is not None)
    found = replace(found, instance_ids=data.instance_ids)
    if instances is not None:
        found.save_instances(instances, raw=raw)
        found = replace(found, instance_probabilities=None)
    answer = {"bags": len(found), "accuracy": found.accuracy, "predictions": found.rows()} if json else None
    hand_over(found, answer, None if out is None else Path(out), quiet, raw)


def _predict_folder(
    model: Path,
    files: list[str],
    reading: Reading,
    folder: Path,
    chunk: int | None,
    where: tuple[int, str | None],
    json: bool,
    quiet: bool,
    raw: bool,
) -> None:
    """One file of answers per file of bags, by so many processes here or by the cluster at an address."""
    from mipl import prediction
    from mipl.persistence import load_model

    reading = reading.for_model(load_model(model), quiet or json)
    how = prediction.Reading(reading.columns(), chunk, raw)
    jobs, scheduler = where
    with cluster_client(scheduler) as client, working("predicting", quiet or json):
        found = prediction.predict_to_folder(
            model, files, folder, how, jobs, lambda done: _say_done(done, quiet or json), client
        )
    if json:
        print_json([asdict(done) for done in found])
        return
    say_accuracy(found, quiet)
    skipped = sum(done.skipped for done in found)
    kept = f", {skipped:,} of them kept from an earlier run" if skipped else ""
    say(f"{sum(done.bags for done in found):,} bags in {len(found):,} files{kept}, written to {folder}", quiet)


def _say_done(done: Predicted, quiet: bool) -> None:
    what = "unchanged, skipped" if done.skipped else f"{done.bags:,} bags"
    say(f"{done.source}: {what}", quiet)
