"""How the program ends when it is asked to: Ctrl-C and SIGTERM, with one line and the exit code of a shell.

Only the program `mipl` uses this; the library leaves the signals of a process to whoever owns it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Stopped", "catch_signals", "exit_code", "stoppable"]

#: Whether a signal raises `Stopped`, so that a command can tidy up; else the process ends at once.
_raises = False


class Stopped(KeyboardInterrupt):
    """Raised in a command by Ctrl-C (SIGINT) or SIGTERM.

    Parameters
    ----------
    signum : int
        The signal.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def exit_code(stop: KeyboardInterrupt) -> int:
    """The exit code for a stop, as a shell has it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (stop.signum if isinstance(stop, Stopped) else signal.SIGINT)


def catch_signals() -> None:
    """From now on SIGINT and SIGTERM end this process with one line, unless it was started to ignore them."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, _stop)
    sys.unraisablehook = _end_where_nothing_can_be_raised


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal raise `Stopped` in this block; a second one, or one in the midst of an import, ends it at once."""
    global _raises
    _raises = True
    try:
        yield
    finally:
        _raises = False


def _stop(signum: int, frame: FrameType | None) -> None:
    global _raises
    if not _raises or _imports(frame):
        _end(signum)
    _raises = False
    raise Stopped(signum)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported: there libraries turn what is raised into errors of their own."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _end(signum: int) -> None:
    # Not print: the signal may have come in the midst of one.
    os.write(2, b"mipl: stopped\n")
    os._exit(128 + signum)


def _end_where_nothing_can_be_raised(unraisable: Any) -> None:
    """End the process if `Stopped` was raised in a destructor or callback, where Python would print and forget it."""
    if isinstance(unraisable.exc_value, Stopped):
        _end(unraisable.exc_value.signum)
    sys.__unraisablehook__(unraisable)
