"""The progress bar: on a terminal and in notebooks only, and never in the way of the work."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from types import SimpleNamespace
from typing import Any

import pytest

from mipl import progress
from mipl.progress import SILENT, Phases, show_phases, track


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


class Line:
    """A display of a notebook: what it showed, one entry per update of one line."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.lines = 0

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Line:
        assert raw
        assert display_id
        self.lines += 1
        self.texts.append(data["text/plain"])
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.texts.append(data["text/plain"])


def run_by(monkeypatch: pytest.MonkeyPatch, shell: object) -> Line:
    line = Line()
    module = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=line.display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    return line


def test_a_notebook_sees_one_line_that_is_updated(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    assert shown(io.StringIO(), range(4)) == ([0, 1, 2, 3], "")
    assert line.lines == 1
    assert line.texts[0].startswith("counting: 0 of 4 (0%)")
    assert line.texts[2].startswith("counting: 2 of 4 (50%)")
    assert line.texts[-1].startswith("counting: 4 of 4 (100%)")
    assert "left" not in line.texts[-1]


def test_thousands_of_quick_items_are_few_updates_in_a_notebook(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))
    monkeypatch.setattr(progress, "_PAUSE", 60.0)
    items, _ = shown(io.StringIO(), iter(range(5000)))
    assert len(items) == 5000
    assert (line.lines, len(line.texts)) == (1, 2)
    assert line.texts[-1].startswith("counting: 5,000, ")


def test_a_loop_that_is_left_says_how_far_it_came_in_a_notebook(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))
    loop = track(range(10), "counting")
    for v in loop:
        if v == 3:
            break
    loop.close()
    assert line.texts[-1].startswith("counting: 3 of 10 (30%)")


def test_without_verbose_a_notebook_sees_nothing(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))
    assert shown(io.StringIO(), range(4), verbose=False) == ([0, 1, 2, 3], "")
    assert line.lines == 0


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["IPython imported by a script", "IPython's terminal"])
def test_ipython_without_a_kernel_is_no_notebook(monkeypatch: pytest.MonkeyPatch, shell: object):
    line = run_by(monkeypatch, shell)
    assert "100%" in shown(Terminal(), range(4))[1]
    assert line.lines == 0


def in_phases(stream: io.StringIO, **options: Any) -> str:
    """What `stream` as standard error sees of three phases."""
    with redirect_stderr(stream), show_phases("BagGP", **options) as told:
        told("landmarks")
        told.within("fold 1 of 2").counting("likelihood", 20, 80)(3)
        told("[bold]stacking[/bold]")
    return stream.getvalue()


def test_a_terminal_sees_the_phase_that_work_is_in():
    told = in_phases(Terminal())
    assert "BagGP: [bold]stacking[/bold]" in told


def test_a_pipe_and_those_who_did_not_ask_see_no_phases():
    assert in_phases(io.StringIO()) == ""
    assert in_phases(Terminal(), verbose=False) == ""


def test_the_bar_of_a_phase_without_steps_is_not_that_of_the_phase_before(monkeypatch: pytest.MonkeyPatch):
    import rich.progress

    totals = []
    update = rich.progress.Progress.update
    monkeypatch.setattr(
        rich.progress.Progress,
        "update",
        lambda self, *args, **options: (totals.append(self.tasks[0].total), update(self, *args, **options)),
    )
    with redirect_stderr(Terminal()), show_phases("BagGP") as told:
        told("likelihood", 3, 80)
        told("stacking")
        told("digests")
    assert totals == [None, 80, None]  # before each of the three


def test_counting_starts_where_the_part_of_the_phase_starts():
    told: list[tuple[str, int, int | None]] = []
    each = Phases(lambda *said: told.append(said)).within("fold 1 of 2").counting("likelihood", 20, 80)
    each(1)
    each(2)
    assert told == [("fold 1 of 2, likelihood", done, 80) for done in (20, 21, 22)]


def test_a_notebook_sees_phases_in_one_line_and_its_end(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    assert in_phases(io.StringIO()) == ""
    assert line.lines == 1
    assert line.texts[1].startswith("BagGP: landmarks, ")
    assert line.texts[3].startswith("BagGP: fold 1 of 2, likelihood 23 of 80, ")
    assert line.texts[-1].startswith("BagGP: done, ")


def test_a_notebook_sees_where_work_was_broken_off(monkeypatch: pytest.MonkeyPatch):
    line = run_by(monkeypatch, SimpleNamespace(kernel=object()))

    def work() -> None:
        with show_phases("BagGP") as told:
            told("landmarks")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert line.texts[-1].startswith("BagGP: stopped at landmarks, ")


def test_other_threads_than_the_main_one_show_nothing():
    def work(_: int) -> str:
        with show_phases("BagGP") as told:
            assert told is SILENT
        return "".join(track("abc", "counting"))

    stream = Terminal()
    with redirect_stderr(stream), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, range(4))) == ["abc"] * 4
    assert stream.getvalue() == ""


def test_other_processes_than_the_main_one_show_nothing():
    from joblib import Parallel, delayed

    assert Parallel(n_jobs=2)(delayed(progress._alone)() for _ in range(2)) == [False, False]
    assert progress._alone()
