"""``--decisions``: what a person decided in a page, taken as certain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipl.cli.output import say

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["DecisionsOption", "decided"]

DecisionsOption = Annotated[
    Path | None,
    typer.Option(
        "--decisions",
        help="CSV of bag_id,decision that a page exported: these labels are taken as certain. Default: none.",
    ),
]

Decisions = dict[str, "str | None"]
#: How many decisions a warning names.
_SHOWN = 5


def decided(dataset: MIPLDataset, path: Path | None, quiet: bool) -> tuple[MIPLDataset, Decisions]:
    """The data set with the decisions of a file, and these; bags of which no candidate is right are left out."""
    from mipl.io.decisions import apply_decisions, read_decisions

    if path is None:
        return dataset, {}
    decisions = read_decisions(path)
    certain = apply_decisions(dataset, decisions)
    left_out = [bag for bag, label in decisions.items() if label is None]
    taken = len(decisions) - len(left_out)
    say(f"{taken:,} label{'' if taken == 1 else 's'} taken as certain from {path}", quiet)
    row = {str(name): i for i, name in enumerate(dataset.bag_ids.tolist())}
    column = {str(name): c for c, name in enumerate(dataset.classes.tolist())}
    new = [
        f"{label!r} (bag {bag!r})"
        for bag, label in decisions.items()
        if label is not None and not dataset.candidates[row[bag], column[label]]
    ]
    if new:
        more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        say(f"warning: not among the candidates of their bags: {', '.join(new[:_SHOWN])}{more}", quiet)
    if left_out:
        say(f"left out, none of their candidates is right: {', '.join(map(repr, left_out))}", quiet)
    return certain, decisions
