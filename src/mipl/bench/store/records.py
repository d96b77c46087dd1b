"""What a cell gave, and how it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mipl.bench.suite.cell import Cell

__all__ = ["Outcome", "Record"]


@dataclass(frozen=True)
class Outcome:
    """What a cell gave.

    Parameters
    ----------
    scores : dict, default={}
        Scores by name, see `mipl.bench.suite.scores`. NaN: it was asked for and is not defined here, as the average
        precision of instances whose labels are not known. Missing: it was not asked for.
    n_test : int or None, default=None
        Test bags with a true label.
    fit_seconds, predict_seconds : float or None, default=None
        Wall time of fit and of the prediction of the test bags.
    fit_cpu_seconds : float or None, default=None
        Processor time of fit, over all threads of the process.
    peak_mib : float or None, default=None
        The highest resident memory of the process during fit and prediction.
    start_mib : float or None, default=None
        What it held before: interpreter, libraries and data.
    threads : int or None, default=None
        BLAS threads of the process.
    host : str, default=""
        The machine.
    error, traceback : str, default=""
        Why the cell failed; empty where it succeeded.
    """

    scores: dict[str, float] = field(default_factory=dict)
    n_test: int | None = None
    fit_seconds: float | None = None
    fit_cpu_seconds: float | None = None
    predict_seconds: float | None = None
    peak_mib: float | None = None
    start_mib: float | None = None
    threads: int | None = None
    host: str = ""
    error: str = ""
    traceback: str = ""

    @property
    def memory_mib(self) -> float | None:
        """Memory that the cell itself took: the peak above what the process held before."""
        return None if self.peak_mib is None else self.peak_mib - (self.start_mib or 0.0)


@dataclass(frozen=True)
class Record:
    """A cell, how it stands, in which run and when (seconds since 1970), and what it gave."""

    cell: Cell
    state: Literal["running", "done", "failed"]
    run: int
    started: float
    finished: float | None
    outcome: Outcome
