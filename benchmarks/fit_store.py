"""A CSV file to which a benchmark appends one row per fit, so that it can be stopped and go on; and its means."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["FitStore"]


class FitStore:
    """Rows of a file by their keys; figures have four decimals."""

    def __init__(self, path: Path, keys: Sequence[str], figures: Sequence[str]) -> None:
        self.path, self.keys, self.figures = path, tuple(keys), tuple(figures)

    def rows(self) -> list[dict[str, str]]:
        """All rows of the file, none where there is no file yet."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as lines:
            return list(csv.DictReader(lines))

    def has(self, cell: Sequence[object]) -> bool:
        """Whether a row has these keys."""
        return any(tuple(row[key] for key in self.keys) == tuple(map(str, cell)) for row in self.rows())

    def append(self, cell: Sequence[object], figures: Mapping[str, float]) -> None:
        """Write a row, and print it."""
        new = not self.path.exists()
        row = dict(zip(self.keys, map(str, cell), strict=True))
        row |= {name: f"{figures[name]:.4f}" for name in self.figures}
        with self.path.open("a", newline="") as lines:
            writer = csv.DictWriter(lines, (*self.keys, *self.figures))
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)

    def print_means(self, over: str = "seed") -> None:
        """Print a Markdown table of means over one of the keys."""
        keys = [key for key in self.keys if key != over]
        groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in self.rows():
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        print("| " + " | ".join([*keys, "splits", *self.figures]) + " |")
        print("|" + "---|" * len(keys) + ":---:|" * (1 + len(self.figures)))
        for cell, rows in sorted(groups.items()):
            means = (np.mean([float(row[name]) for row in rows]) for name in self.figures)
            print("| " + " | ".join([*cell, str(len(rows)), *(f"{mean:.3f}" for mean in means)]) + " |")
