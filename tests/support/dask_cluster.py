"""A Dask scheduler and its workers, each a process of its own on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench_runs import PATIENCE, environment

from mipl.baggp.constants import Stage
from mipl.baggp.likelihood import fit_bag_likelihoods
from mipl.progress import SILENT


def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fits of BagGP take few steps, here and on a cluster, where each one is a round trip."""
    monkeypatch.setattr("mipl.baggp.regression.REGRESSION_ITERATIONS", 2)
    short = (Stage(4, 30.0, True), Stage(4, 100.0, False))
    monkeypatch.setattr(fit_bag_likelihoods, "__defaults__", (None, None, short, SILENT))


class Cluster:
    """A scheduler and workers of one thread; a worker can be killed and another one started at any time."""

    def __init__(self, folder: Path, **settings: str) -> None:
        from distributed import Client

        self._folder = folder
        self._env = {**environment(), "OMP_NUM_THREADS": "1", **settings}
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(file), "--host", "127.0.0.1")
        limit = time.monotonic() + PATIENCE
        while not file.exists():
            assert time.monotonic() < limit, self.log()
            time.sleep(0.05)
        self.address: str = json.loads(file.read_text())["address"]
        self.workers: list[subprocess.Popen[bytes]] = []
        self.client: Any = Client(self.address, timeout=PATIENCE, set_as_default=False)

    def log(self) -> str:
        return (self._folder / "dask.log").read_text()

    def start_worker(self, *options: str) -> None:
        """Start a worker, which joins the cluster when it is ready."""
        where = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self._folder))
        self.workers.append(self._start("worker", self.address, *where, *options))

    def wait_for_workers(self, n: int) -> None:
        self.client.wait_for_workers(n, timeout=PATIENCE)

    def kill(self, address: str) -> None:
        """Kill the worker at an address as the system does it."""
        pid = self.client.scheduler_info()["workers"][address].get("pid")
        pid = pid or self.client.run(_pid, workers=[address])[address]
        (worker,) = [process for process in self.workers if process.pid == pid]
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    def restore(self, n: int) -> None:
        """Have n workers again."""
        self.workers = [process for process in self.workers if process.poll() is None]
        while len(self.workers) < n:
            self.start_worker()
        self.wait_for_workers(n)

    def close(self) -> None:
        self.client.close(timeout=5)
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *options]
        with open(self._folder / "dask.log", "a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=self._env)


def _pid() -> int:
    import os

    return os.getpid()
