"""Results from a store or a CSV file, whichever it is, and from one into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mipl.bench.store.csv_file import read_csv
from mipl.bench.store.records import Record
from mipl.bench.store.store import Store

__all__ = ["import_results", "is_csv", "read_records"]


def is_csv(path: str | Path) -> bool:
    """Whether a path names a CSV export, not a store."""
    return Path(path).suffix.lower() == ".csv"


def read_records(path: str | Path) -> list[Record]:
    """Read a store, or its CSV export (suffix .csv)."""
    if is_csv(path):
        return read_csv(path)
    with Store(path, create=False) as store:
        return store.records()


def import_results(source: str | Path, store: str | Path) -> int:
    """Add the finished cells of a store or CSV export to a store, which is made if need be; give their number."""
    records, environments = read_records(source), dict[int, dict[str, Any]]()
    if not is_csv(source):
        with Store(source, create=False) as opened:
            environments = opened.environments()
    with Store(store) as opened:
        return opened.add(records, environments)
