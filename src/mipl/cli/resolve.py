"""``mipl resolve``: the most probable label of every ambiguously labelled bag, and the instance behind it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, ParamOption, fit_method
from mipl.cli.output import JsonOption, QuietOption, print_json, print_table, say, write_csv

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mipl.dataset import MIPLDataset

__all__ = ["resolve", "resolved_rows"]

_SHOWN = 20


def resolve(
    file: Annotated[str, typer.Argument(help="A data set file, or the name of a data set.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for all answers.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help="Use this saved model instead of fitting one.")] = None,
    method: MethodOption = DEFAULT_METHOD,
    param: ParamOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Give every bag its most probable candidate, with a probability and the instance that carries the evidence."""
    from mipl.loading import load

    dataset = load(file)
    if model is None:
        fitted, _ = fit_method(dataset, method, param, quiet or json)
    else:
        from mipl.persistence import load_model

        fitted = load_model(model)
    sets = [dataset.classes[row].tolist() for row in dataset.candidates]
    rows = resolved_rows(dataset, fitted.resolve(dataset.bags, sets), fitted.predict_instances(dataset.bags))
    if out is not None:
        write_csv(out, rows)
    if json:
        print_json(rows)
        return
    if out is None:
        header = ("bag", "resolved", "probability", "instance", "candidates")
        print_table("", header, [list(row.values()) for row in rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            say(f"... and {len(rows) - _SHOWN:,} more; use --out FILE.csv for all", quiet)
    else:
        say(f"{len(rows):,} bags resolved, written to {out}", quiet)


def resolved_rows(
    dataset: MIPLDataset, posterior: NDArray[np.floating[Any]], evidence: NDArray[np.floating[Any]]
) -> list[dict[str, Any]]:
    """One row a bag: its resolved label, the probability (m, q) and the instance with the most evidence (n, q + 1)."""
    found = posterior.argmax(axis=1)
    names = dataset.classes.tolist()
    rows = []
    for i, c in enumerate(found.tolist()):
        inside = evidence[dataset.bags.offsets[i] : dataset.bags.offsets[i + 1], c]
        rows.append(
            {
                "bag_id": dataset.bag_ids[i].item(),
                "label": names[c],
                "probability": round(float(posterior[i, c]), 6),
                "instance": int(inside.argmax()),
                "candidates": "|".join(str(names[k]) for k in dataset.candidates[i].nonzero()[0]),
            }
        )
    return rows
