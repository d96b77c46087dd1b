"""What the harness costs: milliseconds per cell beside the method's own work, and seconds to resume a finished suite.

Run: python benchmarks/bench_overhead.py
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from measure import measure, print_table

import mipl
from mipl.bench import Store, Suite, run
from mipl.bench.store import Outcome


class Nothing:
    """A method that does nothing, so that all the time of a cell is the harness's."""

    def __init__(self, *, label: int = 0) -> None:
        self.label = label

    def fit(self, bags: mipl.Bags, candidates: np.ndarray) -> Nothing:
        """Learn nothing."""
        return self

    def predict(self, bags: mipl.Bags) -> np.ndarray:
        """Say 0."""
        return np.zeros(len(bags), dtype=int)


def suite(n_methods: int, splits: int) -> Suite:
    methods = [{"method": "bench_overhead:Nothing", "label": str(i), "params": {"label": i}} for i in range(n_methods)]
    return Suite(methods=methods, datasets=["digits"], r=[1], splits=splits, name="overhead")


def overhead(folder: Path, jobs: int) -> list[float]:
    """Milliseconds that a finished cell takes beside its method, once the processes are warm."""
    store, warm = folder / f"{jobs}.sqlite", 50
    cost = measure(partial(run, suite(25, 10), store, jobs=jobs))
    with Store(store) as opened:
        records = sorted(opened.records(), key=lambda record: record.finished)
    wall = records[-1].finished - records[warm].finished
    own = sum(r.outcome.fit_seconds + r.outcome.predict_seconds for r in records[warm + 1 :]) / jobs
    return [jobs, 1000 * (wall - own) / (len(records) - warm - 1), cost.peak_mib]


def resume(folder: Path, n: int) -> list[float]:
    """Seconds until a suite of n finished cells says that it is finished: the call, and the whole command."""
    store = folder / f"resume-{n}.sqlite"
    finished = suite(n // 100, 100)
    with Store(store) as opened:
        opened.begin_run({})
        with opened.transaction():
            for cell in finished.cells().values():
                opened.claim(cell)
                opened.finish(
                    cell, Outcome(scores={"accuracy": 0.5}, fit_seconds=1.0, predict_seconds=0.1, peak_mib=100.0)
                )
    call = measure(lambda: run(finished, store))
    file = folder / f"resume-{n}.toml"
    methods = "".join(
        f'[[methods]]\nmethod = "{m.method}"\nlabel = "{m.label}"\nparams = {{ label = {m.params["label"]} }}\n'
        for m in finished.methods
    )
    file.write_text(f'datasets = ["digits"]\nsplits = {finished.splits}\n{methods}')
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "mipl", "bench", "run", str(file), "--store", str(store)],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return [n, call.seconds, time.perf_counter() - start, call.peak_mib]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.redirect_stderr(io.StringIO()):
            costs = [overhead(folder, jobs) for jobs in (1, 2)]
            resumed = [resume(folder, n) for n in (1_000, 10_000, 40_000)]
    print_table("Harness beside the method's own work", ["jobs", "ms per cell", "peak MiB"], costs)
    print_table("Resume a finished suite", ["cells", "call [s]", "command [s]", "peak MiB"], resumed)


if __name__ == "__main__":
    main()
