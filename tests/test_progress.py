"""The progress bar: on a terminal only, and never in the way of the work."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr
from typing import Any

import pytest

from mipl.progress import track


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def shown(stream: io.StringIO, items: Iterable[Any], **options: Any) -> tuple[list[Any], str]:
    """What comes out of the loop, and what `stream` as standard error has seen by its end."""
    with redirect_stderr(stream):
        return list(track(items, "counting", **options)), stream.getvalue()


def test_a_terminal_sees_the_description_and_how_much_is_done():
    items, told = shown(Terminal(), range(4))
    assert items == [0, 1, 2, 3]
    assert "counting" in told
    assert "100%" in told


def test_the_total_of_a_generator_can_be_given():
    items, told = shown(Terminal(), (letter for letter in "abcd"), total=8)
    assert items == list("abcd")
    assert " 50%" in told
    assert "100%" not in told


def test_without_verbose_there_is_silence():
    assert shown(Terminal(), range(4), verbose=False) == ([0, 1, 2, 3], "")


def test_a_pipe_sees_nothing():
    assert shown(io.StringIO(), range(4)) == ([0, 1, 2, 3], "")


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_items_are_taken_one_by_one_as_they_are_used(stream: io.StringIO):
    taken = []

    def items() -> Iterator[int]:
        for v in range(5):
            taken.append(v)
            yield v

    with redirect_stderr(stream):
        for v in track(items(), "lazy", total=5):
            assert taken == list(range(v + 1))
            if v == 2:
                break
    assert taken == [0, 1, 2]
