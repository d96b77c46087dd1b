"""One measurement of `benchmarks/scale.py` at a time, each in a process of its own."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import status_mib

import mipl

N_FEATURES, N_CLASSES, BAG_SIZE = 64, 10, 10
FILE_INSTANCES = 500_000
#: Bytes for features in fits out of core; more lie in a scratch file.
FIT_BUDGET = 2**30


class Case(NamedTuple):
    """What is measured.

    Attributes
    ----------
    part : "predict", "fit" or "dask"
    where : "memory" or "files"; "process", "1 worker" or "2 workers" in the part "dask"
    instances : n
    landmarks : of the model, which has half as many features
    """

    part: str
    where: str
    instances: int
    landmarks: int


class Found(NamedTuple):
    """What a case took.

    Attributes
    ----------
    seconds : on the clock
    cpu_seconds : of all processes
    resident_mib : the most of the process, of the largest worker in the part "dask"
    cores : that the process may use
    digest : of the model's coefficients
    moved, formula : bytes between processes in a step of the bag likelihood, counted and by the formula
    """

    seconds: float
    cpu_seconds: float
    resident_mib: float
    cores: int
    digest: str = ""
    moved: int = 0
    formula: int = 0


def measured(case: Case) -> Found:
    """Measure a case in a fresh process, so that nothing of another one counts."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, case).result()


def _measure(case: Case) -> Found:
    return {"predict": _predict, "fit": _fit, "dask": _dask}[case.part](case)


# -------------------------------------------------------------------- data and models


def bags(n: int, seed: int) -> mipl.MIPLDataset:
    """Bags of ten instances, one of them near the centre of the bag's class, with one false candidate."""
    rng = np.random.default_rng(seed)
    m = n // BAG_SIZE
    labels = rng.integers(0, N_CLASSES, m)
    X = rng.standard_normal((m, BAG_SIZE, N_FEATURES), dtype=np.float32)
    centres = np.random.default_rng(0).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    X[:, 0] += 2 * centres[labels]
    mask = np.zeros((m, N_CLASSES), dtype=bool)
    mask[np.arange(m), labels] = True
    mask[np.arange(m), (labels + rng.integers(1, N_CLASSES, m)) % N_CLASSES] = True
    ids = np.arange(m) + seed * 10_000_000
    return mipl.MIPLDataset(X, mask, labels=labels, classes=np.arange(N_CLASSES), bag_ids=ids)


@contextmanager
def scanned(n: int) -> Iterator[mipl.Scan]:
    """A scan of n instances in files of at most 500,000, in a temporary folder (TMPDIR)."""
    with tempfile.TemporaryDirectory(prefix="mipl-scale-") as folder:
        for i, start in enumerate(range(0, n, FILE_INSTANCES)):
            bags(min(FILE_INSTANCES, n - start), seed=i + 1).save(Path(folder) / f"part-{i:05}.parquet")
        yield mipl.scan(folder)


def model(n_landmarks: int, **params: Any) -> mipl.BagGP:
    """A BagGP of half as many features as landmarks, which is the default's proportion.

    Beyond 200,000 instances two folds are used anyway; all sizes do the same work so.
    """
    return mipl.BagGP(n_landmarks=n_landmarks, rank=max(1, n_landmarks // 2), cross_fit=2, **params)


def data(case: Case, stack: ExitStack) -> mipl.MIPLDataset | mipl.Scan:
    """The bags of a case, in memory or in files that are gone when the stack is."""
    return bags(case.instances, seed=1) if case.where == "memory" else stack.enter_context(scanned(case.instances))


# -------------------------------------------------------------------- measurements


def _predict(case: Case) -> Found:
    fitted = model(case.landmarks).fit(bags(5000, seed=0))
    fitted.predict_proba(bags(5000, seed=0))  # what happens only once
    with ExitStack() as stack:
        given = data(case, stack)
        return _timed(lambda: fitted.predict_proba(given))[0]


def _fit(case: Case) -> Found:
    budget = 1e12 if case.where == "memory" else FIT_BUDGET
    with ExitStack() as stack:
        given = data(case, stack)
        found, fitted = _timed(lambda: model(case.landmarks, memory_budget=budget).fit(given))
    return found._replace(digest=_digest(fitted))


def _dask(case: Case) -> Found:
    from scale_cluster import moved_per_step, threads, usage, workers

    # The client, for which workers wait, has as many threads as they are, so that all cases are given as many cores.
    n_workers = 1 if case.where == "process" else int(case.where.split()[0])
    with scanned(case.instances) as scan, threads(n_workers):
        if case.where == "process":
            found, fitted = _timed(lambda: model(case.landmarks).fit(scan))
            return found._replace(digest=_digest(fitted))
        with workers(n_workers) as client:
            before, _ = usage(client)
            found, fitted = _timed(lambda: model(case.landmarks).fit(scan, client=client))
            after, resident = usage(client)
            moved = moved_per_step(client, case.instances, max(1, case.landmarks // 2), N_CLASSES)
    return found._replace(
        cpu_seconds=found.cpu_seconds + after - before,
        resident_mib=resident,
        digest=_digest(fitted),
        moved=moved.measured,
        formula=moved.formula,
    )


def _timed(call: Callable[[], Any]) -> tuple[Found, Any]:
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts here
    start, cpu = time.perf_counter(), _cpu_seconds()
    result = call()
    seconds, spent = time.perf_counter() - start, _cpu_seconds() - cpu
    return Found(seconds, spent, status_mib("VmHWM"), len(os.sched_getaffinity(0))), result


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _digest(fitted: mipl.BagGP) -> str:
    return hashlib.sha256(np.ascontiguousarray(fitted.coef_).tobytes()).hexdigest()[:12]
