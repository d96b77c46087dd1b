"""The finished cells of a suite, found in a store or in its CSV export."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mipl.bench.cell import Cell, Outcome
from mipl.bench.statistics import Comparison, compare, mean_and_std
from mipl.bench.store import Record, Store
from mipl.bench.suite import Suite
from mipl.errors import DataError
from mipl.io.atomic import atomic_path

__all__ = ["Results", "Summary", "import_results", "read_records", "write_csv"]

_COLUMNS: dict[str, type] = {
    "dataset": str, "options": dict, "scale": str, "r": int, "method": str, "params": dict, "split": int,
    "train_size": float, "code": str, "accuracy": float, "n_test": int, "fit_seconds": float, "predict_seconds": float,
    "peak_mib": float, "start_mib": float, "threads": int, "error": str, "finished": float,
}  # fmt: skip
#: Decimals of measured columns; accuracies are kept exactly, for the tests.
_DIGITS = {"fit_seconds": 6, "predict_seconds": 6, "peak_mib": 1, "start_mib": 1, "finished": 0}


@dataclass(frozen=True)
class Summary:
    """One method on one data set and r, over the splits that have finished; `test` is the reference against it."""

    dataset: str
    r: int | None
    method: str
    n: int
    mean: float
    std: float
    fit_seconds: float
    predict_seconds: float
    memory_mib: float
    test: Comparison | None


class Results:
    """What a suite's cells gave.

    A cell that was run by several versions of the code counts as the newest of them left it.

    Attributes
    ----------
    done : dict
        The record of each finished place.
    failed : dict
        The record of each place that failed.
    running : dict
        The record of each place that a live run works on for the first time.
    outdated : int
        Number of results that another version of the code made.
    """

    def __init__(self, suite: Suite, records: Iterable[Record]) -> None:
        self.suite = suite
        cells = suite.cells()
        newest: dict[str, Record] = {}
        for record in sorted(records, key=lambda record: (record.state != "running", record.finished or 0.0)):
            newest[record.cell.key] = record
        found = {place: newest[cell.key] for place, cell in cells.items() if cell.key in newest}
        self.size = len(cells)
        self.done = {place: record for place, record in found.items() if record.state == "done"}
        self.failed = {place: record for place, record in found.items() if record.state == "failed"}
        self.running = {place: record for place, record in found.items() if record.state == "running"}
        self.outdated = sum(record.cell.code != cells[place].code for place, record in self.done.items())
        #: (data set, r) in the suite's order
        self.problems = list(dict.fromkeys((place.dataset, place.r) for place in cells))

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
        scores = {key: {s: float(o.accuracy or 0.0) for s, o in by_split.items()} for key, by_split in cells.items()}
        result = {}
        for (dataset, r, method), by_split in cells.items():
            mean, std = mean_and_std(scores[dataset, r, method])
            reference = scores.get((dataset, r, self.suite.reference), {})
            result[dataset, r, method] = Summary(
                dataset=dataset,
                r=r,
                method=method,
                n=len(by_split),
                mean=mean,
                std=std,
                fit_seconds=_mean(o.fit_seconds for o in by_split.values()),
                predict_seconds=_mean(o.predict_seconds for o in by_split.values()),
                memory_mib=max((o.memory_mib or 0.0 for o in by_split.values()), default=0.0),
                test=None if method == self.suite.reference else compare(reference, scores[dataset, r, method]),
            )
        return result

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


def read_records(path: str | Path) -> list[Record]:
    """Read a store, or its CSV export (suffix .csv)."""
    if Path(path).suffix.lower() == ".csv":
        return _read_csv(Path(path))
    with Store(path, create=False) as store:
        return store.records()


def import_results(source: str | Path, store: str | Path) -> int:
    """Add the finished cells of a store or CSV export to a store, which is made if need be; give their number."""
    records, environments = read_records(source), dict[int, dict[str, Any]]()
    if Path(source).suffix.lower() != ".csv":
        with Store(source, create=False) as opened:
            environments = opened.environments()
    with Store(store) as opened:
        return opened.add(records, environments)


def write_csv(records: Iterable[Record], path: str | Path) -> Path:
    """Export finished and failed cells, one a row; `read_records` reads them back."""
    settled = [record for record in records if record.state != "running"]
    settled.sort(key=lambda record: (record.cell.dataset, record.cell.r or 0, str(record.cell), record.cell.code))
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for record in settled:
            values = {**vars(record.cell), **vars(record.outcome), "finished": record.finished}
            writer.writerow([_to_text(values[name], _DIGITS.get(name)) for name in _COLUMNS])
    return Path(path)


def _read_csv(path: Path) -> list[Record]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if list(reader.fieldnames or []) != list(_COLUMNS):
                raise DataError(f"{path} is no export of results: its columns are {reader.fieldnames}")
            return [_from_row({name: _from_text(row[name], kind) for name, kind in _COLUMNS.items()}) for row in reader]
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read results from {path}: {error}") from error


def _from_row(values: dict[str, Any]) -> Record:
    cell = Cell(**{f.name: values[f.name] for f in fields(Cell)})
    outcome = Outcome(**{f.name: values[f.name] for f in fields(Outcome) if f.name in values})
    return Record(cell, "failed" if outcome.error else "done", 0, 0.0, values["finished"], outcome)


def _to_text(value: Any, digits: int | None) -> str:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if value is None:
        return ""
    return str(value) if digits is None else f"{value:.{digits}f}"


def _from_text(text: str, kind: type) -> Any:
    if kind is dict:
        return json.loads(text)
    if kind is str:
        return text
    return None if text == "" else kind(text)


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")
