"""The experiments: suites of methods and data sets, run into a store, tested, tabulated and drawn.

Five rooms: `suite` (what is run), `store` (where results are kept), `execution` (how cells run), `analysis` (what the
results say) and `output` (tables, figures and pages).
"""

from mipl.bench.execution import run
from mipl.bench.store import Store
from mipl.bench.suite import Suite, load_suite, suite_names

__all__ = ["Store", "Suite", "load_suite", "run", "suite_names"]
