"""Saves that are killed at any moment: the old file or the new one, whole, and no trace after the next save."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hostile_files import Tally, dataset

import mipl

#: A program that saves two data sets, or models of them, in turn and without end.
SAVE = """
import itertools, sys
import numpy as np
import mipl
sys.path.insert(0, sys.argv[2])
from hostile_files import dataset
path = sys.argv[1]
ds = dataset()
large = ds[np.arange(6).repeat(4000)]
things = [ds, large]
if path.endswith(".mipl"):
    things = [mipl.make("PL-kNN").fit(each) for each in (ds, large[:3000])]
print("ready", flush=True)
for thing in itertools.cycle(things):
    thing.save(path)
"""
SUPPORT = str(Path(__file__).parents[1] / "support")


def kill_in_mid_save(path: Path, wait: float) -> None:
    program = subprocess.Popen([sys.executable, "-c", SAVE, str(path), SUPPORT], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    time.sleep(wait)
    program.send_signal(signal.SIGKILL)
    program.wait()
    program.stdout.close()


@pytest.mark.parametrize(
    ("suffix", "count"),
    [
        (".parquet", 2),
        *(
            pytest.param(suffix, 8, marks=pytest.mark.slow, id=f"{suffix}-campaign")
            for suffix in (".parquet", ".feather", ".npz", ".csv", ".jsonl", ".mat", ".mipl")
        ),
    ],
)
def test_a_killed_save_loses_nothing_and_leaves_no_trace(tmp_path: Path, suffix: str, count: int):
    path, rng, tally = tmp_path / f"x{suffix}", np.random.default_rng(8), Tally(f"killed saves, {suffix}")
    thing = mipl.make("PL-kNN").fit(dataset()) if suffix == ".mipl" else dataset()
    thing.save(path)
    path.chmod(0o600)
    left = 0
    for i in range(count):
        kill_in_mid_save(path, float(rng.uniform(0, 0.3)))
        try:
            found = mipl.load_model(path) if suffix == ".mipl" else mipl.load(path)
            whole = suffix == ".mipl" or len(found) in (6, 24000)
        except mipl.DataError:
            whole = False
        tally.count("whole" if whole else "lost", i)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert list(tmp_path.glob(f"*{suffix}")) == [path]
        left += len(os.listdir(tmp_path)) - 1
        thing.save(path)
        assert os.listdir(tmp_path) == [path.name]
    print(f"{left} temporary files were left, and none after the next save")
    tally.check()
