"""The program, stopped by signals at many moments: one line and the code of a shell."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from bench_runs import PATIENCE, environment, heed_interrupts

STARTS = (
    "import sys; sys.argv = ['mipl', *{words!r}]; from mipl.__main__ import main; print('here', flush=True); main()"
)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("delay", [0.02, 0.3, 1.0])
def test_a_signal_in_the_first_second_ends_the_program_with_one_line(tmp_path, signum, code, delay):
    words = ["bench", "run", "quick", "--store", str(tmp_path / "s.sqlite"), "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-c", STARTS.format(words=words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        preexec_fn=heed_interrupts,
    ) as started:
        assert started.stdout.readline() == "here\n"
        time.sleep(delay)
        started.send_signal(signum)
        _, told = started.communicate(timeout=PATIENCE)
    assert (started.returncode, len(told.splitlines())) == (code, 1), told
    assert "stopped" in told


PROGRAM = """
import gc, os, signal, sys
from mipl.stopping import Stopped, catch_signals, exit_code, stoppable

class Cell:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass

catch_signals()
if sys.argv[1] == "outside":
    os.kill(os.getpid(), signal.SIGTERM)
try:
    with stoppable():
        if sys.argv[1] == "import":
            import swallows
        if sys.argv[1] == "destructor":
            Cell()
            print("forgotten")
        os.kill(os.getpid(), signal.SIGTERM)
        print("not reached")
except Stopped as stop:
    if sys.argv[1] == "twice":
        os.kill(os.getpid(), signal.SIGINT)
    print("tidied", exit_code(stop))
"""


#: As compiled modules do whose own import fails for any reason.
SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
except BaseException as error:
    raise ImportError("cannot be imported") from error
"""


@pytest.mark.parametrize(
    ("case", "printed", "told", "code"),
    [
        ("once", "tidied 143\n", "", 0),
        ("twice", "", "mipl: stopped\n", 130),
        ("outside", "", "mipl: stopped\n", 143),
        ("destructor", "", "mipl: stopped\n", 143),
        ("import", "", "mipl: stopped\n", 143),
    ],
)
def test_a_command_can_tidy_up_once_and_no_signal_is_forgotten(tmp_path, case, printed, told, code):
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    words = [sys.executable, "-c", PROGRAM, case]
    ways = {"env": environment(), "cwd": tmp_path, "preexec_fn": heed_interrupts}
    done = subprocess.run(words, capture_output=True, text=True, **ways)
    assert (done.stdout, done.stderr, done.returncode) == (printed, told, code)
