"""``mipl predict``: classify the bags of a file with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mipl.cli.output import JsonOption, QuietOption, print_json, print_table, say, working, write_csv

__all__ = ["predict"]

_SHOWN = 20


def predict(
    model: Annotated[Path, typer.Argument(help="A model file that 'mipl fit' wrote.")],
    file: Annotated[str, typer.Argument(help="A data set file, or the name of a data set.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for all answers.")] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict the label of every bag, with the probability of each class."""
    import numpy as np

    from mipl.loading import load
    from mipl.persistence import load_model

    loaded, dataset = load_model(model), load(file)
    with working(f"predicting {len(dataset):,} bags", quiet or json):
        proba = loaded.predict_proba(dataset.bags)
    predicted, top = loaded.classes_[proba.argmax(axis=1)], proba.max(axis=1)
    rows: list[dict[str, Any]] = [
        {"bag_id": bag, "predicted": label, "probability": round(float(p), 6)}
        | {f"p({name})": round(float(v), 6) for name, v in zip(loaded.classes_.tolist(), row, strict=True)}
        for bag, label, p, row in zip(dataset.bag_ids.tolist(), predicted.tolist(), top, proba, strict=True)
    ]
    accuracy = None
    if dataset.labels is not None:
        known = np.flatnonzero(dataset.labels >= 0)
        truth = dataset.classes[dataset.labels[known]]
        accuracy = float(np.mean(predicted[known].astype(str) == truth.astype(str)))
    if out is not None:
        write_csv(out, rows)
    if json:
        print_json({"bags": len(rows), "accuracy": accuracy, "predictions": rows})
        return
    if out is None:
        print_table("", ("bag", "predicted", "probability"), [list(row.values())[:3] for row in rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            say(f"... and {len(rows) - _SHOWN:,} more; use --out FILE.csv for all", quiet)
    if accuracy is not None:
        say(f"accuracy against the file's labels: {accuracy:.3f}", quiet)
    if out is not None:
        say(f"written to {out}", quiet)
