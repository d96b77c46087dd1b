"""What a run and a worker say to each other: lines of JSON, each with the id of the question that it belongs to."""

from __future__ import annotations

import json
import os
import select
from typing import Any

__all__ = ["MessageReader", "StrayOutputError", "send"]

#: No answer is as long; a method that floods the pipe must not fill the run's memory.
_LONGEST = 2**24


class StrayOutputError(Exception):
    """Something else than a message stands on the pipe."""


def send(descriptor: int, message: dict[str, Any]) -> None:
    """Write a message whole."""
    left = memoryview(json.dumps(message).encode() + b"\n")
    while left:
        left = left[os.write(descriptor, left) :]


class MessageReader:
    """Reads messages from a pipe without ever waiting for the rest of a line.

    Parameters
    ----------
    descriptor : int
        The end of the pipe to read.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def wait(self, seconds: float | None) -> bool:
        """Wait until something can be read, at most so long; None: as long as it takes."""
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def read(self) -> dict[str, Any] | None:
        """Read what there is after `wait`; give a message once its line is complete.

        Raises
        ------
        EOFError
            The pipe has ended.
        StrayOutputError
            What stands there is no message, or more follows it.
        """
        piece = os.read(self._descriptor, 2**16)
        if not piece:
            raise EOFError
        line, end, rest = (self._unread + piece).partition(b"\n")
        if not end and len(line) <= _LONGEST:
            self._unread = line
            return None
        self._unread = b""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or rest:
            raise StrayOutputError((rest if isinstance(message, dict) else line)[:80].decode(errors="backslashreplace"))
        return message

    def is_empty(self) -> bool:
        """Whether nothing at all has come since the last message."""
        return not self._unread and not self.wait(0)
