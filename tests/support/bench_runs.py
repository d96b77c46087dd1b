"""Runs of the bench as a user starts them, in processes of their own, and what their methods and stores say."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

#: Seconds that anything may take: a busy machine is slow, not wrong.
PATIENCE = 300


def environment():
    """The environment in which another Python finds what this one can import, this folder included."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def methods(name, labels=("a",), **params):
    """Entries of a suite: the class `name` of bench_methods under each label."""
    return [
        {"method": f"bench_methods:{name}", "label": label, "params": {"label": label, **params}} for label in labels
    ]


def write_suite(folder, bags, labels, splits, name="Constant", **params):
    """A suite file whose methods log their fits; gives the file and the log."""
    log = folder / "log"
    log.touch()
    lines = [f'datasets = ["{bags}"]', f"splits = {splits}"]
    for method in methods(name, labels, log=str(log), **params):
        written = json.dumps(method["params"]).replace('": ', '" = ')
        lines += [
            "[[methods]]",
            f'method = "{method["method"]}"',
            f'label = "{method["label"]}"',
            f"params = {written}",
        ]
    file = folder / "suite.toml"
    file.write_text("\n".join(lines))
    return file, log


def heed_interrupts():
    """Let a child be stopped by SIGINT, also where a shell put the test run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_run(suite_file, store, *options):
    """Start `mipl bench run` as a user does, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "mipl", "bench", "run", str(suite_file), "--store", str(store), *options],
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        preexec_fn=heed_interrupts,
    )


def wait_for(condition, process):
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.01)


def wait_for_end(pids, told):
    """Wait until none of the processes is alive."""
    limit = time.monotonic() + PATIENCE
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < limit, told
        time.sleep(0.02)


def done_cells(store):
    """Finished cells as a reader of the raw file sees them, each of them whole."""
    if not store.exists():
        return set()
    with sqlite3.connect(store, timeout=30) as db:
        try:
            rows = db.execute("SELECT params, split, scores, fit_seconds FROM results WHERE state = 'done'").fetchall()
        except sqlite3.OperationalError:  # the tables are not made yet
            return set()
    assert all("accuracy" in json.loads(scores) and seconds is not None for _, _, scores, seconds in rows)
    return {(json.loads(params)["label"], split) for params, split, _, _ in rows}


def fits(log):
    """How often each cell was fitted, from the log that the methods write themselves."""
    return Counter((line.split()[0], int(line.split()[1])) for line in log.read_text().splitlines())


def workers(log):
    """The processes that have started a fit."""
    started = Path(f"{log}.started")
    lines = started.read_text().rpartition("\n")[0] if started.exists() else ""  # the last one may be half written
    return {int(line.split()[-1]) for line in lines.splitlines()}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
