"""Published accuracies, to stand beside ours; `published.csv` holds them with their sources."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["Published", "published"]


@dataclass(frozen=True)
class Published:
    """An accuracy as its authors, or later ones, report it.

    `outcome` says how the paper's MIPLGP does against the method: win, tie or loss; empty where it was not tested.
    An unconfirmed figure is as recalled: shown, but marked.
    """

    mean: float
    std: float | None
    outcome: str
    confirmed: bool
    source: str


@cache
def published(train_size: float) -> dict[tuple[str, str, str, int | None], Published]:
    """All figures for splits with that share of training bags, by (method, group, data set, r).

    >>> published(0.5)["MIPLGP", "", "mnist", 1].mean
    0.921
    """
    text = (resources.files("mipl.bench.analysis") / "published.csv").read_text(encoding="utf-8")
    return {
        (row["method"], row["group"], row["dataset"], int(row["r"])): Published(
            mean=float(row["mean"]),
            std=float(row["std"]) if row["std"] else None,
            outcome=row["outcome"],
            confirmed=row["confirmed"] == "yes",
            source=row["source"],
        )
        for row in csv.DictReader(text.splitlines())
        if float(row["train_size"]) == train_size
    }
