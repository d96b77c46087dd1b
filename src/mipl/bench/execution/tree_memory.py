"""The memory of a worker and of all that it has started."""

from __future__ import annotations

import os
import time
from pathlib import Path

from mipl.bench.execution.guardian import process_tree

__all__ = ["TreeMemory"]

#: How often new processes are looked for: this reads the whole of /proc.
_LOOK_SECONDS = 0.25


class TreeMemory:
    """Watches the resident memory of everything that descends from a process.

    Parameters
    ----------
    root : int
        The process, which is not counted itself.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._members: list[int] = []
        self._looked = -float("inf")

    def used_mib(self, allowed_mib: float) -> float:
        """Resident memory in MiB.

        Pages that processes share after a fork are counted once, by their share in each. That takes time, so it is only
        done where the plain sum is above `allowed_mib`.
        """
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._members, self._looked = process_tree(self._root)[1:], time.monotonic()
        used = sum(map(_resident_mib, self._members))
        return used if used <= allowed_mib or len(self._members) == 1 else sum(map(_proportional_mib, self._members))


def _resident_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has ended
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _proportional_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended, or this system does not tell
        return _resident_mib(pid)
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
