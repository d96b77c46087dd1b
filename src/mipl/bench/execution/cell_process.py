"""A worker process seen from outside: give it a cell, wait for the outcome, kill it at its limits."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.errors import ParameterError, UnavailableError

__all__ = ["CellProcess", "Limits", "usable_cpus"]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
#: How often memory is looked at: a process can go over its limit by what it allocates in this time.
_WATCH_SECONDS = 0.05
#: What is kept of the words of a process that died; Python's crash handler alone lists some 5,000 bytes of modules.
_TAIL_BYTES = 16_000


@dataclass(frozen=True)
class Limits:
    """What one cell may use.

    Parameters
    ----------
    seconds : float or None, default=None
        Wall time of fit, prediction and scores; None for no limit.
    memory_mib : float or None, default=None
        Resident memory of its process; None for no limit.
    """

    seconds: float | None = None
    memory_mib: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise ParameterError(f"the limit {name}={value} must be positive")
        if self.memory_mib is not None and not Path("/proc/self/statm").exists():
            raise UnavailableError("a memory limit needs /proc, as on Linux; leave it out here")


def usable_cpus() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class CellProcess:
    """Runs cells one after the other in a process of its own, which is started again when it died.

    Parameters
    ----------
    threads : int, default=1
        BLAS and OpenMP threads of the process; a smaller ``OMP_NUM_THREADS`` in the environment is kept.
    limits : Limits or None, default=None
        What one cell may use; None for no limits.
    """

    def __init__(self, threads: int = 1, limits: Limits | None = None) -> None:
        self.threads = threads
        self.limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Any = None
        self._closed = False

    def run(self, cell: Cell, scores: Sequence[str]) -> Outcome:
        """Run a cell, compute its scores and wait for it.

        A process that dies on it is given a second chance, in a fresh one.
        """
        outcome = self._try(cell, scores)
        if outcome is None and not self._closed:
            outcome = self._try(cell, scores)
        if outcome is None:
            outcome = Outcome(error=f"the process {self._cause}", traceback=self._tail)
        return outcome

    def close(self) -> None:
        """Kill the process; a `run` that waits for it in another thread returns."""
        self._closed = True
        self._kill()

    # ---------------------------------------------------------------- one attempt

    def _try(self, cell: Cell, scores: Sequence[str]) -> Outcome | None:
        """Run a cell; None when the process died, for a reason left in `_cause` and `_tail`."""
        self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            request = {"cell": asdict(cell), "scores": list(scores)}
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._note_death()
            return None
        deadline = float("inf")
        while True:
            reason = self._wait(deadline)
            if reason:
                self._kill()
                return Outcome(error=reason)
            # Unbuffered, so that an answer never waits in a buffer that select cannot see.
            line = self._process.stdout.readline() if self._process.stdout else b""
            if not line.endswith(b"\n"):
                self._note_death()
                return None
            message = json.loads(line)
            if "outcome" in message:
                return Outcome(**message["outcome"])
            if self.limits.seconds is not None:  # the cell starts now: its data are loaded
                deadline = time.monotonic() + self.limits.seconds

    def _wait(self, deadline: float) -> str:
        """Wait for an answer; say which limit was broken, if one was."""
        assert self._process is not None
        assert self._process.stdout is not None
        watch = _WATCH_SECONDS if self.limits.memory_mib is not None else None
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return f"TimeLimit: stopped after {self.limits.seconds:g} s"
            pause = min((p for p in (watch, left) if p is not None and p != float("inf")), default=None)
            if select.select([self._process.stdout], [], [], pause)[0]:
                return ""
            if self.limits.memory_mib is not None:
                used = _resident_mib(self._process.pid)
                if used > self.limits.memory_mib:
                    return f"MemoryLimit: stopped at {used:.0f} MiB, allowed are {self.limits.memory_mib:g} MiB"

    # ---------------------------------------------------------------- the process

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        threads = min(self.threads, int(os.environ.get("OMP_NUM_THREADS", self.threads)))
        # The worker imports what its parent can import, a user's module in the current folder included.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, **dict.fromkeys(_THREAD_VARIABLES, str(threads))}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            # Unbuffered and with a traceback on a crash: the log then holds what the process last did.
            [sys.executable, "-u", "-X", "faulthandler", "-m", "mipl.bench.execution.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )

    def _note_death(self) -> None:
        assert self._process is not None
        self._kill()
        code = self._process.wait()
        self._cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._log.seek(0)
        self._tail = self._log.read()[-_TAIL_BYTES:].decode(errors="replace")
        self._process = None

    def _kill(self) -> None:
        """Kill the process and all that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _resident_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
