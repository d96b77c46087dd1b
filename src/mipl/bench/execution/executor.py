"""Where cells run: what a run asks of it."""

from __future__ import annotations

from typing import Protocol

from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell

__all__ = ["Executor"]


class Executor(Protocol):
    """Where cells run. `slots` is how many to hand out at a time; `check` says what keeps a cell from running."""

    description: str

    @property
    def slots(self) -> int: ...  # noqa: D102
    def check(self, cell: Cell, part: str) -> str: ...  # noqa: D102
    def submit(self, cell: Cell) -> None: ...  # noqa: D102
    def next_finished(self, timeout: float) -> tuple[Cell, Outcome] | None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102
