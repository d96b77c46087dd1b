"""Runs and workers of the bench, killed at random moments: nothing lost, nothing repeated, nobody left behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import time

import numpy as np
import pytest
from bench_runs import PATIENCE, done_cells, fits, is_alive, start_run, workers, write_suite

import mipl

LABELS, SPLITS = "abcdef", 20


@pytest.fixture
def bags(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "bags.npz"
    mipl.MIPLDataset([rng.normal(size=(3, 4)) for _ in range(10)], [{0, 1}] * 10, labels=[0, 1] * 5).save(file)
    return file


class Campaign:
    """A suite that is run, killed and run again, and what must hold after each kill."""

    def __init__(self, folder, bags):
        self.store = folder / "s.sqlite"
        self.suite, self.log = write_suite(folder, bags, LABELS, SPLITS, seconds=0.03)
        self.finished = {}  # how often a cell had been fitted when it was first seen finished
        self.started = set()
        self.counts = {"kills": 0, "lost": 0, "repeated": 0, "orphans": 0, "corrupt": 0, "wrong": 0, "lines": 0}
        self.odd = []  # what runs said that should have ended otherwise

    def start(self):
        return start_run(self.suite, self.store, "--jobs", "2", "--quiet")

    def check(self):
        done, counts = done_cells(self.store), fits(self.log)
        self.counts["lost"] += len(self.finished.keys() - done)
        self.counts["repeated"] += sum(counts[cell] != before for cell, before in self.finished.items())
        self.finished.update({cell: counts[cell] for cell in done - self.finished.keys()})
        limit = time.monotonic() + PATIENCE
        while (
            alive := [pid for pid in workers(self.log) - self.started if is_alive(pid)]
        ) and time.monotonic() < limit:
            time.sleep(0.02)
        self.counts["orphans"] += len(alive)
        self.started |= workers(self.log)
        if self.store.exists():
            with sqlite3.connect(self.store) as db:
                self.counts["corrupt"] += db.execute("PRAGMA integrity_check").fetchone() != ("ok",)

    def finish(self):
        """Run to the end, and compare with what the cells must give."""
        last = self.start()
        _, said = last.communicate(timeout=PATIENCE)
        assert last.returncode == 0, said
        self.check()
        assert self.finished.keys() == {(label, split) for label in LABELS for split in range(SPLITS)}
        with sqlite3.connect(self.store) as db:
            found = db.execute("SELECT split, json_extract(scores, '$.accuracy') FROM results").fetchall()
        self.counts["wrong"] += len({split for split, _ in found}) != len(set(found))  # all methods see the same bags

    def report(self, name):
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in self.counts.items()))
        assert {what: count for what, count in self.counts.items() if what != "kills" and count} == {}, self.odd


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_runs_lose_repeat_and_leave_nothing(tmp_path, bags, seed):
    campaign, rng = Campaign(tmp_path, bags), np.random.default_rng(seed)
    for _ in range(10):
        process = campaign.start()
        time.sleep(rng.uniform(0.2, 4.0))
        process.kill()
        process.communicate()
        campaign.counts["kills"] += 1
        campaign.check()
    campaign.finish()
    campaign.report(f"runs killed, seed {seed}")


@pytest.mark.slow
def test_killed_workers_lose_repeat_and_leave_nothing(tmp_path, bags):
    campaign, rng = Campaign(tmp_path, bags), np.random.default_rng(0)
    process = campaign.start()
    while process.poll() is None and campaign.counts["kills"] < 20:
        time.sleep(rng.uniform(0.1, 1.0))
        alive = sorted(pid for pid in workers(campaign.log) if is_alive(pid))
        if alive:
            try:
                os.kill(int(rng.choice(alive)), int(rng.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])))
                campaign.counts["kills"] += 1
            except ProcessLookupError:
                continue
    process.communicate(timeout=PATIENCE)
    # A cell whose worker was killed twice has failed, with that reason; it is no loss, and runs again on request.
    with sqlite3.connect(campaign.store) as db:
        db.execute("DELETE FROM results WHERE state = 'failed' AND error LIKE 'the process was killed by %'")
    campaign.check()
    campaign.finish()
    campaign.report("workers killed")


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_runs_end_with_one_line_and_their_code(tmp_path, bags, signum, code):
    campaign, rng = Campaign(tmp_path, bags), np.random.default_rng(signum)
    for _ in range(10):
        process = campaign.start()
        time.sleep(rng.uniform(0.5, 6.0))
        process.send_signal(signum)
        _, said = process.communicate(timeout=PATIENCE)
        campaign.counts["kills"] += 1
        # Killed by the signal itself: it came before the program was reached, when Python knows no other end.
        early = process.returncode == -signum
        if not early and (process.returncode, len(said.splitlines())) not in ((code, 1), (0, 0)):
            campaign.counts["lines"] += 1
            campaign.odd.append((process.returncode, said))
        campaign.check()
    campaign.finish()
    campaign.report(f"runs stopped by {signal.Signals(signum).name}")
