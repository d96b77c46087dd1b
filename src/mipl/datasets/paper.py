"""The data sets of the MIPLGP paper as its Table 1 describes them, to stand beside `MIPLDataset.summary`."""

from __future__ import annotations

from typing import Any

__all__ = ["paper_characteristics"]

_COLUMNS = ("bags", "instances", "max", "min", "dims", "classes", "positive")
_TABLE = {
    "mnist": (500, 20664, 48, 35, 784, 5, 8.0),
    "fmnist": (500, 20810, 48, 36, 784, 5, 8.0),
    "newsgroups": (1000, 43122, 86, 11, 200, 10, 8.0),
    "birdsong": (1300, 48425, 76, 25, 38, 13, 8.3),
    "sival": (1500, 47414, 32, 31, 30, 25, 25.6),
}


def paper_characteristics() -> dict[str, dict[str, Any]]:
    """For each of the five data sets the figures of Table 1, under the keys of `MIPLDataset.summary`.

    >>> paper_characteristics()["mnist"]["instances"]
    20664
    """
    return {name: dict(zip(_COLUMNS, row, strict=True)) for name, row in _TABLE.items()}
