"""A worker process seen from outside: give it a cell, wait for the outcome, kill it at its limits."""

from __future__ import annotations

import os
import secrets
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

from mipl.bench.execution import guardian
from mipl.bench.execution.guardian import is_running, process_tree
from mipl.bench.execution.messages import MessageReader, StrayOutputError, send
from mipl.bench.execution.tree_memory import TreeMemory
from mipl.bench.store.records import Outcome
from mipl.bench.suite.cell import Cell
from mipl.errors import ParameterError, UnavailableError

__all__ = ["CellProcess", "Limits", "usable_cpus"]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
#: How often memory is looked at: a process can go over its limit by what it allocates in this time.
_WATCH_SECONDS = 0.05
#: Without a limit nothing is looked at while a cell runs.
_LONGEST_PAUSE = 3600.0
#: How long a process whose pipe has ended may take to end itself, and one that was killed to be gone.
_LAST_SECONDS = 30.0
#: What is kept of the words of a process that died; Python's crash handler alone lists some 5,000 bytes of modules.
_TAIL_BYTES = 16_000


@dataclass(frozen=True)
class Limits:
    """What one cell may use.

    Parameters
    ----------
    seconds : float or None, default=None
        Wall time of a cell: import of its method, loading of its data, fit, prediction and scores; None for no limit.
    memory_mib : float or None, default=None
        Resident memory of its process and of all that this starts; None for no limit.
    """

    seconds: float | None = None
    memory_mib: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise ParameterError(f"the limit {name}={value} must be positive")
        if self.memory_mib is not None and not Path("/proc/self/statm").exists():
            raise UnavailableError("a memory limit needs /proc, as on Linux; leave it out here")


class _LimitBrokenError(Exception):
    """A cell went over a limit; its process has been killed."""


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
        self._has_group = False
        self._reader: MessageReader
        self._memory: TreeMemory
        self._log: Any = None
        self._closed = False

    def run(self, cell: Cell, scores: Sequence[str]) -> Outcome:
        """Run a cell, compute its scores and wait for it.

        A process that dies on it, or that says what is no answer, is given a second chance, in a fresh one.
        """
        question = {"cell": asdict(cell), "scores": list(scores)}
        try:
            answer = self._ask(cell, question) or (None if self._closed else self._ask(cell, question))
        except _LimitBrokenError as broken:
            return Outcome(error=str(broken))
        if answer is None:
            return Outcome(error=f"the process {self._cause}", traceback=self._tail)
        return Outcome(**answer["outcome"])

    def check(self, cell: Cell, part: str) -> str:
        """Say what keeps a cell from running, as `worker.problem_of` finds it; empty for nothing.

        What breaks a limit or kills the process is left to the cell itself, which then fails with that reason.
        """
        try:
            answer = self._ask(cell, {"cell": asdict(cell), "check": part})
        except _LimitBrokenError:
            return ""
        return "" if answer is None else str(answer["problem"])

    def close(self) -> None:
        """Kill the process; a `run` that waits for it in another thread returns."""
        self._closed = True
        self._kill()

    # ---------------------------------------------------------------- one question

    def _ask(self, cell: Cell, question: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a question about a cell; None when there is none, for a reason left in `_cause` and `_tail`."""
        # The id is new for each try, so that no other process and no earlier question can know it.
        identity = f"{cell.key}-{secrets.token_hex(8)}"
        try:
            self._start()
            assert self._process is not None
            assert self._process.stdin is not None
            send(self._process.stdin.fileno(), {"id": identity, **question})
            answer = self._next_message(self.limits)
        except (BrokenPipeError, EOFError):
            self._end_process("")
            return None
        except StrayOutputError as stray:
            self._end_process(f"wrote {str(stray)!r} where its answer is due")
            return None
        if answer.get("id") != identity:
            self._end_process("gave an answer that belongs to another cell")
            return None
        if answer.get("process") != self._worker:
            told = answer.get("outcome", {}).get("error") or "it came back from fit"
            self._end_process(f"forked a child that answered in its place: {told}")
            return None
        return answer

    def _next_message(self, limits: Limits) -> dict[str, Any]:
        """Wait for a message; kill the process where it goes over a limit."""
        deadline = float("inf") if limits.seconds is None else time.monotonic() + limits.seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                self._kill()
                raise _LimitBrokenError(f"TimeLimit: stopped after {limits.seconds:g} s")
            pause = min(left, _WATCH_SECONDS if limits.memory_mib is not None else _LONGEST_PAUSE)
            if self._reader.wait(pause):
                message = self._reader.read()
                if message is not None:
                    return message
            if limits.memory_mib is not None:
                used = self._memory.used_mib(limits.memory_mib)
                if used > limits.memory_mib:
                    self._kill()
                    raise _LimitBrokenError(
                        f"MemoryLimit: stopped at {used:.0f} MiB, allowed are {limits.memory_mib:g} MiB"
                    )

    # ---------------------------------------------------------------- the process

    def _start(self) -> None:
        """Have a process that waits for a question: this one, or a new one if it has died or said something unasked."""
        if self._process is not None:
            if self._process.poll() is None and self._reader.is_empty():
                return
            self._kill()
        threads = min(self.threads, int(os.environ.get("OMP_NUM_THREADS", self.threads)))
        # The worker imports what its parent can import, a user's module in the current folder included.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, **dict.fromkeys(_THREAD_VARIABLES, str(threads))}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        # Unbuffered and with a traceback on a crash: the log then holds what the process last did.
        worker = [sys.executable, "-u", "-X", "faulthandler", "-m", "mipl.bench.execution.worker"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), *worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        self._has_group = True
        assert self._process.stdout is not None
        self._reader = MessageReader(self._process.stdout.fileno())
        self._memory = TreeMemory(self._process.pid)
        # The limits are the cell's: they count from the moment that the process is there to run it.
        self._worker = self._next_message(Limits()).get("ready")

    def _end_process(self, cause: str) -> None:
        """End the process and note why: for the cause, or as it died of itself."""
        assert self._process is not None
        if not cause:  # it is dying; what kills it first would be taken for the reason
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LAST_SECONDS)
        self._kill()
        code = self._process.wait()
        died = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._cause = cause or died
        self._log.seek(0)
        self._tail = self._log.read()[-_TAIL_BYTES:].decode(errors="replace")
        self._process = None

    def _kill(self) -> None:
        """Kill the process and all that it started, and wait until they are gone."""
        if self._process is None or not self._has_group:
            return
        self._has_group = False  # its number may be another's from now on
        tree = process_tree(self._process.pid) if self._process.returncode is None else []
        for pid in tree:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # A signal is only sent: the memory of those that it kills is free when they are gone.
        limit = time.monotonic() + _LAST_SECONDS
        while any(map(is_running, tree)) and time.monotonic() < limit:
            time.sleep(0.001)
