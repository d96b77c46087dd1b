"""The process that runs cells: ``python -m mipl.bench.execution.worker``, spoken to in lines of JSON.

A process of its own gives each worker its share of BLAS threads (the libraries read the variables when they are
loaded), a peak of memory that belongs to one cell, and something that can be killed when a cell goes over its limits.
Every answer carries the id of its question and the number of this process: a child that a method forks, and that runs
on past it, cannot answer for it.
"""

from __future__ import annotations

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
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from mipl.base import MIPLClassifier
from mipl.bench.execution.guardian import die_with_parent
from mipl.bench.execution.messages import send
from mipl.bench.execution.predictions import checked_classes, checked_probabilities
from mipl.bench.execution.scores import Fitted, compute
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.compute import give_memory_back
from mipl.errors import MIPLError
from mipl.parameters import check_parameters

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["build", "problem_of", "run_cell"]

#: What is kept of an error's text and of the end of its traceback.
_ERROR_CHARACTERS, _TRACEBACK_CHARACTERS = 4_000, 16_000
#: Bags of the fit before the first one that is timed.
_WARM_UP_BAGS = 8


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
        _warm_up(cell, train)
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
        if hasattr(model, "predict_proba"):
            given = model.predict_proba(test.bags) if proba is None else proba
            proba = checked_probabilities(given, test.candidates.shape, "predict_proba")
        predicted = checked_classes(predicted, len(test), test.n_classes)
        found = compute(scores, Fitted(model, train, test, predicted, proba))
        return Outcome(scores=found, n_test=n_test, **measured, **where)
    except Exception as error:
        told = traceback.format_exc()[-_TRACEBACK_CHARACTERS:]
        return Outcome(error=_text_of(error), traceback=told, **where)


def _text_of(error: Exception) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ raises
        text = f"{type(error).__name__}: an error without a text"
    return text[:_ERROR_CHARACTERS]


def _fit(model: Any, train: MIPLDataset) -> None:
    """Fit to all that the data set knows: votes, groups and background too; a class of one's own gets candidates."""
    if isinstance(model, MIPLClassifier):
        model.fit(train)
    else:
        model.fit(train.bags, train.candidates)


def _predict(model: Any, test: MIPLDataset) -> tuple[Any, Any]:
    """Classes (m,) of the test bags, and their probabilities (m, q) where these come with them.

    The contract of `MIPLClassifier` says that its `predict` is the most probable class, so one pass over the bags is
    enough; a class that does not keep the contract is asked for its `predict`.
    """
    if isinstance(model, MIPLClassifier):
        proba = model.predict_proba(test.bags)
        return proba.argmax(axis=1), proba
    return model.predict(test.bags), None


#: Methods with their parameters that this process has fitted before.
_warm: set[str] = set()


def _warm_up(cell: Cell, train: MIPLDataset) -> None:
    """Fit a few bags before the first fit that is timed.

    PyTorch imports some 800 modules when an optimizer is first made, and other libraries do alike: seconds that belong
    to no cell. A class of one's own may have side effects, so it is not fitted more often than asked.
    """
    name = json.dumps([cell.method, cell.params])
    if name in _warm or ":" in cell.method:
        return
    _warm.add(name)
    few = train[np.arange(min(_WARM_UP_BAGS, len(train)))]
    model = build(cell)
    with suppress(Exception), warnings.catch_warnings():  # few bags may be too few; the cell itself says what is wrong
        warnings.simplefilter("ignore")
        _fit(model, few)
        _predict(model, few)


def problem_of(cell: Cell, part: str) -> str:
    """What keeps a cell from running that can be told without a fit; empty for nothing.

    Parameters
    ----------
    cell : Cell
        The cell.
    part : {"method", "data"}
        Whether to import and build its method and to check the parameters, or to load its data.
    """
    try:
        if part == "data":
            _split(cell.dataset, json.dumps(cell.options), cell.r, cell.train_size, cell.split, cell.scale)
            return ""
        model = build(cell)
        inner = model.get_params().values() if hasattr(model, "get_params") else ()
        for each in (model, *inner):
            if isinstance(each, BaseEstimator) and hasattr(each, "_parameter_constraints"):
                check_parameters(each)
    except MIPLError as error:
        return str(error)
    except Exception as error:
        return _text_of(error)
    return ""


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
    give_memory_back()
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


def main() -> None:
    """Read questions from standard input, one per line, and answer each.

    Both pipes are moved away from the standard streams, which are handed to the methods: these may print what they
    like, and find nothing to read.
    """
    questions, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    own, modules = os.getpid(), {name for name in sys.modules if name.partition(".")[0] in ("mipl", "numpy")}
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(questions, waiting), daemon=True).start()
    send(answers, {"ready": own})
    while True:
        question = json.loads(waiting.get())
        cell = Cell(**question["cell"])
        if "check" in question:
            answer: dict[str, Any] = {"problem": problem_of(cell, question["check"])}
        else:
            answer = {"outcome": asdict(run_cell(cell, question["scores"]))}
        send(answers, {"id": question["id"], "process": os.getpid(), **answer})
        if os.getpid() != own:  # a child that a method has forked; the run refuses its answer
            os._exit(1)
        if not modules <= sys.modules.keys():  # a method has thrown modules away: the next cell needs a fresh process
            os.killpg(0, signal.SIGKILL)


def _read(questions: int, waiting: queue.SimpleQueue[str]) -> None:
    """Pass the questions on; at their end the run is gone, and this process ends with all that it started."""
    with os.fdopen(questions) as lines:
        for line in lines:
            waiting.put(line)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent(signal.SIGKILL, os.getppid())
    main()
