"""The process that runs cells: ``python -m mipl.bench.execution.worker``, spoken to in lines of JSON.

A process of its own gives each worker its share of BLAS threads (the libraries read the variables when they are
loaded), a peak of memory that belongs to one cell, and something that can be killed when a cell goes over its limits.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mipl.base import MIPLClassifier
from mipl.bench.execution.scores import Fitted, compute
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mipl.dataset import MIPLDataset

__all__ = ["build", "run_cell"]


def run_cell(cell: Cell, scores: Sequence[str] = ("accuracy",)) -> Outcome:
    """Fit the cell's method on its training bags and score it on its test bags; errors are part of the outcome.

    Parameters
    ----------
    cell : Cell
        What to run.
    scores : sequence of str, default=("accuracy",)
        What to compute, by the names of `mipl.bench.suite.scores`.
    """
    where: dict[str, Any] = {
        "threads": int(os.environ.get("OMP_NUM_THREADS", 0)) or os.cpu_count(),
        "host": socket.gethostname(),
    }
    try:
        train, test = _split(cell.dataset, json.dumps(cell.options), cell.r, cell.train_size, cell.split, cell.scale)
        assert test.labels is not None
        n_test = int((test.labels >= 0).sum())
        if not n_test:
            raise ValueError("no test bag has a true label, so nothing can be scored")
        model = build(cell)
        _send({"started": True})
        start_mib = _reset_peak()
        begin, begin_cpu = time.perf_counter(), time.process_time()
        _fit(model, train)
        fitted, fitted_cpu = time.perf_counter(), time.process_time()
        predicted, proba = _predict(model, test)
        measured: dict[str, Any] = {
            "fit_seconds": fitted - begin,
            "fit_cpu_seconds": fitted_cpu - begin_cpu,
            "predict_seconds": time.perf_counter() - fitted,
            "peak_mib": _peak_mib(),
            "start_mib": start_mib,
        }
        if predicted.shape != (len(test),):
            raise ValueError(f"predict gave an array of shape {predicted.shape} for {len(test)} bags")
        if proba is None and hasattr(model, "predict_proba"):
            proba = np.asarray(model.predict_proba(test.bags))
        found = compute(scores, Fitted(model, train, test, predicted, proba))
        return Outcome(scores=found, n_test=n_test, **measured, **where)
    except Exception as error:
        return Outcome(error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc(), **where)


def _fit(model: Any, train: MIPLDataset) -> None:
    """Fit to all that the data set knows: votes, groups and background too; a class of one's own gets candidates."""
    if isinstance(model, MIPLClassifier):
        model.fit(train)
    else:
        model.fit(train.bags, train.candidates)


def _predict(model: Any, test: MIPLDataset) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Classes (m,) of the test bags, and their probabilities (m, q) where these come with them.

    The contract of `MIPLClassifier` says that its `predict` is the most probable class, so one pass over the bags is
    enough; a class that does not keep the contract is asked for its `predict`.
    """
    if isinstance(model, MIPLClassifier):
        proba = model.predict_proba(test.bags)
        return proba.argmax(axis=1), proba
    return np.asarray(model.predict(test.bags)), None


def build(cell: Cell) -> Any:
    """Make the cell's estimator.

    Its `random_state`, or that of the learner inside it, is the split, unless the suite sets it.
    """
    if ":" in cell.method:
        module, _, name = cell.method.partition(":")
        model = getattr(import_module(module), name)(**cell.params)
    else:
        from mipl.registry import make

        model = make(cell.method, **cell.params)
    if any(name.rpartition("__")[2] == "random_state" for name in cell.params):
        return model
    if hasattr(model, "random_state"):
        model.random_state = cell.split
    elif hasattr(model, "get_params"):
        seeds = [name for name in model.get_params() if name.endswith("__random_state")]
        model.set_params(**dict.fromkeys(seeds, cell.split))
    return model


@lru_cache(maxsize=1)
def _dataset(name: str, options: str, r: int | None) -> MIPLDataset:
    from mipl.errors import DataError
    from mipl.loading import load

    named = {} if r is None else {**json.loads(options), "r": r}
    dataset = load(name, **named)
    if dataset.labels is None:
        raise DataError(f"{name} has no true labels, so nothing can be scored on it")
    return dataset


@lru_cache(maxsize=1)
def _split(
    name: str, options: str, r: int | None, train_size: float, split: int, scale: str
) -> tuple[MIPLDataset, ...]:
    from mipl.datasets.scaling import SCALINGS

    parts = _dataset(name, options, r).split(train_size=train_size, seed=split)
    return SCALINGS[scale](*parts) if scale else parts


# -------------------------------------------------------------------- memory


def _reset_peak() -> float | None:
    """Set the process's high-water mark back to what it holds now, and give that; None where this cannot be done.

    What earlier cells freed is first given back to the system: kept, it would hide what this cell takes.
    """
    with suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status_mib("VmRSS")
    except OSError:
        return None


def _peak_mib() -> float:
    """Peak resident memory since `_reset_peak`; since the start of the process where that cannot be had."""
    try:
        return _status_mib("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _status_mib(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {key}")


# -------------------------------------------------------------------- the process

#: Answers go here; standard output itself is handed to the methods, which may print what they like.
_answers: Any = None


def _send(message: dict[str, Any]) -> None:
    if _answers is not None:
        _answers.write(json.dumps(message) + "\n")
        _answers.flush()


def main() -> None:
    """Read cells from standard input, one per line, and answer each with its outcome."""
    global _answers
    _answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    while True:
        request = json.loads(requests.get())
        _send({"outcome": asdict(run_cell(Cell(**request["cell"]), request["scores"]))})


def _read(requests: queue.SimpleQueue[str]) -> None:
    """Pass the requests on; at their end the parent is gone, and this process ends with all that it started."""
    for line in sys.stdin:
        requests.put(line)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
