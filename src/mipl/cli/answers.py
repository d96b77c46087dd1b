"""What `mipl predict`, `explain` and `resolve` do with a Resolution: a file, JSON, or the first rows as a table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipl.cli.output import print_json, print_table, say, working

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mipl.base import MIPLClassifier
    from mipl.cli.files import Reading
    from mipl.prediction import Predicted
    from mipl.resolution import Resolution

__all__ = [
    "InstancesOption",
    "ModelArgument",
    "OutOption",
    "RawOption",
    "hand_over",
    "print_next",
    "print_rows",
    "say_accuracy",
    "stream_answers",
    "write_report",
]

ModelArgument = Annotated[Path, typer.Argument(help="A model file that 'mipl fit' wrote.")]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="File for all answers: .csv, .parquet, .jsonl or .xlsx; - is standard output (CSV). Default: print the "
        "first bags.",
    ),
]
InstancesOption = Annotated[
    Path | None,
    typer.Option(
        "--instances",
        help="File for the probabilities of every instance: .csv, .parquet, .jsonl or .xlsx. Default: none.",
    ),
]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Write names as they are. Without it those that begin with = + - @ get an apostrophe in .csv and .xlsx, "
        "as a spreadsheet would run them as formulas, and --out - spells out control characters.",
    ),
]

_SHOWN = 20
#: Columns of the printed table, as far as there are such answers; files and JSON have the others too.
_COLUMNS = (
    "bag_id",
    "label",
    "predicted",
    "probability",
    "second_label",
    "instance",
    "instance_id",
    "candidates",
    "outside",
    "truth",
)


def hand_over(found: Resolution, json: Any, out: Path | None, quiet: bool, raw: bool = False) -> None:
    """Write the answers to `out`, or print `json` where it is not None, or print the first rows."""
    if out is not None:
        found.save(out, raw=raw)
    if json is not None:
        print_json(json)
        return
    if out is None:
        print_rows("", found[:_SHOWN])
        if len(found) > _SHOWN:
            say(f"... and {len(found) - _SHOWN:,} more; use --out FILE.csv for all", quiet)
    say(found.verdict, quiet)
    if found.accuracy is not None:
        say(f"accuracy against the file's labels: {found.accuracy:.3f}", quiet)
    if out is not None:
        say(f"{len(found):,} bags, written to {out}", quiet)


def stream_answers(
    model: Path,
    files: list[str],
    reading: Reading,
    out: str,
    *,
    instances: Path | None,
    quiet: bool,
    raw: bool,
    chunk: int | None = None,
    evidence: bool = False,
) -> None:
    """Read, predict and write one chunk after the other; with `evidence` rows name the instance behind the label."""
    from mipl import prediction
    from mipl.persistence import load_model

    loaded = load_model(model)
    reading = reading.for_model(loaded, quiet)
    how = prediction.Reading(reading.columns(), chunk, raw)
    with working("predicting", quiet):
        done = prediction.predict_to_file(loaded, files, out, how, instances, lambda text: say(text, quiet), evidence)
    say_accuracy([done], quiet)
    say(f"{done.bags:,} bags, written to {'standard output' if out == '-' else out}", quiet)


def say_accuracy(found: Sequence[Predicted], quiet: bool) -> None:
    """Say how many of the true labels that files know were predicted."""
    known = sum(done.known for done in found)
    if known:
        say(f"accuracy against the file's labels: {sum(done.right for done in found) / known:.3f}", quiet)


def print_next(found: Resolution, k: int, json: bool, quiet: bool) -> None:
    """Print the k bags that a person should label next."""
    rows = found.next_to_label(k)
    if json:
        print_json(rows)
        return
    if not rows:
        say("every bag is certain; there is nothing to label", quiet)
        return
    print_table("", [name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows])
    told = "by the entropy of the bag alone" if found.label_order is None else "and how much of it is about other bags"
    say(f"gain: what an answer is expected to tell, in nats, {told}", quiet)


def write_report(
    found: Resolution,
    path: Path,
    *,
    data: Sequence[str],
    model: MIPLClassifier,
    quiet: bool,
    decisions: Mapping[str, str | None] | None = None,
) -> None:
    """Write the page of the answers, which tells the file, the parameters and the command that they come from."""
    command = shlex.join(["mipl", *sys.argv[1:]])
    notes = {"data": " ".join(data), "parameters": model.get_params(), "command": command}
    name = "standard input" if data[0] == "-" else Path(data[0]).name
    title = name if len(data) == 1 else f"{name} and {len(data) - 1} more"
    found.report(path, title=title, notes=notes, decisions=decisions)
    say(f"page written to {path}; open it in a browser", quiet)


def print_rows(title: str, found: Resolution) -> None:
    """Print one line per bag."""
    rows = found.rows()
    columns = [name for name in _COLUMNS if name in rows[0]]
    print_table(title, [name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows])
