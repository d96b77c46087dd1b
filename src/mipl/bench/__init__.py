"""The experiments: suites of methods and data sets, run into a store, tested, tabulated and drawn."""

from mipl.bench.run import run
from mipl.bench.store import Store
from mipl.bench.suite import Suite
from mipl.bench.suite_file import load_suite, suite_names

__all__ = ["Store", "Suite", "load_suite", "run", "suite_names"]
