"""The process between a run and a worker: when the run dies, however it dies, the worker dies with all it started.

A fit that holds Python's lock cannot notice that its run is gone, and a signal that kills the worker alone would leave
the worker's own children behind. So a run starts this small program by its path, with the standard library alone. It
starts the worker, adopts what the worker leaves behind, ends as the worker ends, and kills all of them when Linux tells
it that the run has died. Elsewhere a worker ends when its pipe does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import Any

__all__ = ["die_with_parent", "is_running", "process_tree"]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(signum: int, parent: int) -> None:
    """Ask for a signal at the death of the thread that started this process; kill this process if it is dead already.

    Parameters
    ----------
    signum : int
        The signal.
    parent : int
        The process that started this one.
    """
    _control(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def process_tree(pid: int) -> list[int]:
    """A process and all that descend from it, it first; only the process itself where there is no /proc."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                children.setdefault(_parent_of(name), []).append(int(name))
    tree = [pid]
    for each in tree:  # grows while it is read
        tree += children.get(each, [])
    return tree


def is_running(pid: int) -> bool:
    """Whether a process is there and more than an entry that waits for its parent; no where there is no /proc."""
    return _stat_of(str(pid))[0] not in (b"Z", b"X", b"")


def _parent_of(pid: str) -> int:
    return int(_stat_of(pid)[1])


def _stat_of(pid: str) -> tuple[bytes, bytes]:
    """The state of a process and the number of its parent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program, in parentheses, may hold anything.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):  # it has just ended
        return b"", b"-1"
    return state, parent


def _control(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _kill_children() -> None:
    for pid in process_tree(os.getpid())[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _end_all(*_: Any) -> None:
    _kill_children()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Start the worker whose command follows the number of the run's process, and end as it ends."""
    signal.signal(signal.SIGTERM, _end_all)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    die_with_parent(signal.SIGTERM, int(sys.argv[1]))
    worker = os.fork()
    if worker == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    for pipe in (0, 1):  # so that the run sees the end of the worker's answers
        os.close(pipe)
    ended, status = 0, 0
    while ended != worker:
        ended, status = os.wait()
    _kill_children()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # nothing can be set for SIGKILL
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
