"""The program, stopped by signals at many moments: one line and the code of a shell."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from bench_runs import environment

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
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as started:
        assert started.stdout.readline() == "here\n"
        time.sleep(delay)
        started.send_signal(signum)
        _, told = started.communicate(timeout=120)
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


@pytest.mark.parametrize(
    ("case", "printed", "told", "code"),
    [
        ("once", "tidied 143\n", "", 0),
        ("twice", "", "mipl: stopped\n", 130),
        ("outside", "", "mipl: stopped\n", 143),
        ("destructor", "", "mipl: stopped\n", 143),
    ],
)
def test_a_command_can_tidy_up_once_and_no_signal_is_forgotten(case, printed, told, code):
    done = subprocess.run([sys.executable, "-c", PROGRAM, case], capture_output=True, text=True, env=environment())
    assert (done.stdout, done.stderr, done.returncode) == (printed, told, code)
