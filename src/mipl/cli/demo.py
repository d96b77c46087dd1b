"""``mipl demo``: the whole story on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.answers import print_rows, write_report
from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, fit_method
from mipl.cli.output import SUMMARY_COLUMNS, JsonOption, QuietOption, print_json, print_table, say

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is found.")] = Path("demo"),
    method: MethodOption = DEFAULT_METHOD,
    r: Annotated[int, typer.Option("--r", help="False positive labels per bag.")] = 1,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit, classify and resolve handwritten digits with ambiguous labels, and draw what was found."""
    from mipl.io.atomic import check_writable
    from mipl.loading import load
    from mipl.resolving import explain, resolve

    out.mkdir(parents=True, exist_ok=True)
    table, picture, page, saved = (out / name for name in ("resolved.csv", "resolved.png", "report.html", "model.mipl"))
    for file in (table, picture, page, saved):
        check_writable(file)
    dataset = load("digits", r=r, seed=0)
    train, test = dataset.split(train_size=0.7, seed=0)
    if not json:
        print_table(
            "The data: bags of handwritten digits, each with candidate labels of which one is true",
            SUMMARY_COLUMNS,
            [list(dataset.summary().values())],
        )

    model, seconds = fit_method(train, method, None, quiet or json)
    resolved, predicted = resolve(train, model), explain(model, test)
    resolved.save(table)
    resolved.plot(picture)
    model.save(saved)
    write_report(resolved, page, data=["digits"], model=model, quiet=quiet or json)
    if json:
        print_json(
            {
                "method": model.name,
                "seconds": round(seconds, 3),
                "accuracy_of_new_bags": predicted.accuracy,
                "accuracy_among_candidates": resolved.accuracy,
                "files": [str(file) for file in (table, picture, page, saved)],
            }
        )
        return
    print_table(
        f"{model.name}, fitted on {len(train)} bags without any true label in {seconds:.2f} s",
        ("question", "right", "by chance"),
        [
            (f"label of {len(test)} new bags", predicted.accuracy, 1 / dataset.n_classes),
            (f"true label among the {r + 1} candidates of {len(train)} training bags", resolved.accuracy, 1 / (r + 1)),
        ],
    )
    print_rows("The first resolved bags, with the instance that carries the evidence", resolved[:8])
    say(f"written: {table}, {picture}, {saved}", quiet)
