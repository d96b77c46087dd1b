"""Where results are kept: a SQLite store, what a cell gave, and CSV files to exchange it."""

from mipl.bench.store.records import Outcome, Record
from mipl.bench.store.store import Store
from mipl.bench.store.transfer import import_results, read_records

__all__ = ["Outcome", "Record", "Store", "import_results", "read_records"]
