"""What is run: suites of methods and data sets, their cells, and the version of the code behind each cell."""

from mipl.bench.suite.cell import Cell
from mipl.bench.suite.entries import DatasetEntry, MethodEntry
from mipl.bench.suite.files import load_suite, suite_names
from mipl.bench.suite.suite import Place, Suite

__all__ = ["Cell", "DatasetEntry", "MethodEntry", "Place", "Suite", "load_suite", "suite_names"]
