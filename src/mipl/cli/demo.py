"""``mipl demo``: the whole story on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, fit_method
from mipl.cli.output import SUMMARY_COLUMNS, QuietOption, print_table, say, write_csv

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture and the tables.")] = Path("demo"),
    method: MethodOption = DEFAULT_METHOD,
    r: Annotated[int, typer.Option("--r", help="False positive labels a bag.")] = 1,
    quiet: QuietOption = False,
) -> None:
    """Fit, classify and resolve handwritten digits with ambiguous labels, and draw what was found."""
    import numpy as np

    from mipl.cli.resolve import resolved_rows
    from mipl.loading import load
    from mipl.plotting.resolution import draw_resolved

    out.mkdir(parents=True, exist_ok=True)
    dataset = load("digits", r=r, seed=0)
    train, test = dataset.split(train_size=0.7, seed=0)
    assert train.labels is not None
    print_table(
        "The data: bags of handwritten digits, each with candidate labels of which one is true",
        SUMMARY_COLUMNS,
        [list(dataset.summary().values())],
    )

    model, seconds = fit_method(train, method, None, quiet)
    test_accuracy = model.score(test.bags, test.labels)
    posterior = model.resolve(train.bags, train.candidates)
    resolved = float(np.mean(posterior.argmax(axis=1) == train.labels))
    print_table(
        f"{model.name}, fitted on {len(train)} bags without any true label in {seconds:.2f} s",
        ("question", "right", "by chance"),
        [
            (f"label of {len(test)} new bags", test_accuracy, 1 / dataset.n_classes),
            (f"true label among the {r + 1} candidates of {len(train)} training bags", resolved, 1 / (r + 1)),
        ],
    )

    evidence = model.predict_instances(train.bags)
    rows = resolved_rows(train, posterior, evidence)
    print_table(
        "The first resolved bags, with the instance that carries the evidence",
        ("bag", "resolved", "probability", "instance", "candidates", "truth"),
        [[*row.values(), train.classes[c]] for row, c in zip(rows[:8], train.labels, strict=False)],
    )
    write_csv(out / "resolved.csv", rows)
    draw_resolved(train, posterior, evidence, out / "resolved.png")
    model.save(out / "model.mipl")
    say(f"written: {out / 'resolved.csv'}, {out / 'resolved.png'}, {out / 'model.mipl'}", quiet)
