"""The finished cells of a suite, found in a store or in its CSV export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mipl.bench.analysis.statistics import Comparison, Spread, compare, spread
from mipl.bench.store.records import Outcome, Record
from mipl.bench.store.transfer import read_records
from mipl.bench.suite.suite import Suite

__all__ = ["Results", "Summary"]


@dataclass(frozen=True)
class Summary:
    """One method on one data set and r, over the splits that have finished.

    Parameters
    ----------
    dataset : str
        Label of the data set.
    r : int or None
        Number of false positive labels.
    method : str
        Name of the method.
    n : int
        Number of finished splits.
    scores : dict
        What the splits gave, by the name of the score; a score that no split has is missing.
    fit_seconds, fit_cpu_seconds, predict_seconds : float
        Means over splits; NaN where they were not measured.
    memory_mib : float
        The highest of all splits.
    test : Comparison or None
        The reference's accuracy against this method's; None for the reference itself.
    """

    dataset: str
    r: int | None
    method: str
    n: int
    scores: dict[str, Spread]
    fit_seconds: float
    fit_cpu_seconds: float
    predict_seconds: float
    memory_mib: float
    test: Comparison | None

    @property
    def accuracy(self) -> Spread:
        """The accuracy, which every finished cell has."""
        return self.scores["accuracy"]


class Results:
    """What a suite's cells gave.

    A cell that was run by several versions of the code counts as today's left it, else as the latest run did: runs of a
    store are numbered, and a clock may be wrong.

    Parameters
    ----------
    suite : Suite
        Which cells.
    records : iterable of Record
        Results of these and of any other cells.

    Attributes
    ----------
    done : dict
        The record of each finished place.
    failed : dict
        The record of each place that failed.
    running : dict
        The record of each place that a live run works on for the first time.
    size : int
        Number of cells of the suite.
    problems : list of (str, int or None)
        Data set and r, in the suite's order.
    outdated : int
        Number of results that another version of the code made.
    lacking : dict
        Scores that the suite asks for and finished cells do not have, with the number of such cells.
    """

    def __init__(self, suite: Suite, records: Iterable[Record]) -> None:
        self.suite = suite
        cells = suite.cells()
        newest: dict[str, Record] = {}
        today = {cell.key: cell.code for cell in cells.values()}
        for record in sorted(records, key=lambda record: _age(record, today)):
            newest[record.cell.key] = record
        found = {place: newest[cell.key] for place, cell in cells.items() if cell.key in newest}
        self.size = len(cells)
        self.done = {place: record for place, record in found.items() if record.state == "done"}
        self.failed = {place: record for place, record in found.items() if record.state == "failed"}
        self.running = {place: record for place, record in found.items() if record.state == "running"}
        self.problems = list(dict.fromkeys((place.dataset, place.r) for place in cells))
        self.outdated = sum(record.cell.code != cells[place].code for place, record in self.done.items())
        self.lacking = Counter(
            name for record in self.done.values() for name in suite.scores if name not in record.outcome.scores
        )

    @classmethod
    def read(cls, suite: Suite, path: str | Path) -> Results:
        """Find the suite's cells in a store or a CSV export."""
        return cls(suite, read_records(path))

    @cached_property
    def summaries(self) -> dict[tuple[str, int | None, str], Summary]:
        """Means and tests, by (data set, r, method); what has no finished split is missing."""
        cells: dict[tuple[str, int | None, str], dict[int, Outcome]] = {}
        for place, record in self.done.items():
            cells.setdefault((place.dataset, place.r, place.method), {})[place.split] = record.outcome
        accuracies = {key: {s: o.scores["accuracy"] for s, o in by_split.items()} for key, by_split in cells.items()}
        result = {}
        for (dataset, r, method), by_split in cells.items():
            outcomes = list(by_split.values())
            reference = accuracies.get((dataset, r, self.suite.reference), {})
            names = dict.fromkeys(name for outcome in outcomes for name in outcome.scores)
            result[dataset, r, method] = Summary(
                dataset=dataset,
                r=r,
                method=method,
                n=len(by_split),
                scores={name: spread(o.scores.get(name) for o in outcomes) for name in names},
                fit_seconds=spread(o.fit_seconds for o in outcomes).mean,
                fit_cpu_seconds=spread(o.fit_cpu_seconds for o in outcomes).mean,
                predict_seconds=spread(o.predict_seconds for o in outcomes).mean,
                memory_mib=spread(o.memory_mib for o in outcomes).highest,
                test=None if method == self.suite.reference else compare(reference, accuracies[dataset, r, method]),
            )
        return result

    def win_tie_loss(self) -> dict[str, dict[int | None, Counter[str]]]:
        """Count verdicts of the reference against each other label, by r; the inner key None is the total.

        Methods of the same label in different groups (Mean and MaxMin) are counted together, as in the paper's Table 3.
        """
        label = {m.name: m.label for m in self.suite.methods}
        counts: dict[str, dict[int | None, Counter[str]]] = {}
        for m in self.suite.methods:
            if m.name != self.suite.reference:
                counts.setdefault(m.label, {})
        for summary in self.summaries.values():
            if summary.test is None:
                continue
            by_r = counts[label[summary.method]]
            for key in {summary.r, None}:
                by_r.setdefault(key, Counter())[summary.test.verdict] += 1
        return counts

    def notes(self) -> list[str]:
        """What a reader of the tables has to know: gaps, failures and mixed code."""
        notes = []
        missing = self.size - len(self.done) - len(self.failed)
        if missing:
            notes.append(f"{missing} of {self.size} cells have not been run.")
        if self.failed:
            notes.append(f"{len(self.failed)} of {self.size} cells failed; `mipl bench status` lists why.")
        mixed = self._mixed()
        if mixed:
            notes.append(f"Made by more than one version of the code: {', '.join(mixed)}.")
        return notes

    def _mixed(self) -> list[str]:
        """Methods whose figures on some data set come from several versions of the code."""
        codes: dict[tuple[str, str], set[str]] = {}
        for place, record in self.done.items():
            codes.setdefault((place.method, place.dataset), set()).add(record.cell.code)
        return list(dict.fromkeys(method for (method, _), versions in codes.items() if len(versions) > 1))


def _age(record: Record, today: dict[str, str]) -> tuple[bool, bool, int, float]:
    """Where a record stands among those of its cell: what counts comes last."""
    made_today = record.cell.code == today.get(record.cell.key)
    return record.state != "running", made_today, record.run, record.finished or 0.0
