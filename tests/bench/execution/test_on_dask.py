import json
import signal
import subprocess
import sys
import time

import pytest
from bench_runs import PATIENCE, done_cells, environment, fits, start_run, wait_for, workers, write_suite

pytest.importorskip("distributed")


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers of one thread, each a process of its own; gives the address and the workers."""
    address_file = tmp_path / "scheduler.json"
    started = []

    def start(*command):
        with open(tmp_path / "dask.log", "a") as log:
            process = subprocess.Popen([sys.executable, "-m", *command], stderr=log, stdout=log, env=environment())
        started.append(process)
        return process

    start("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(address_file),
          "--host", "127.0.0.1")  # fmt: skip
    limit = time.monotonic() + PATIENCE
    while not address_file.exists():
        assert time.monotonic() < limit, (tmp_path / "dask.log").read_text()
        time.sleep(0.05)
    address = json.loads(address_file.read_text())["address"]
    dask_workers = [
        start("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
              "--local-directory", str(tmp_path))
        for _ in range(2)
    ]  # fmt: skip
    yield address, dask_workers
    for process in reversed(started):
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_dask_worker_that_dies_in_mid_run_costs_no_result(tmp_path, bags, cluster):
    address, dask_workers = cluster
    store, gate = tmp_path / "s.sqlite", tmp_path / "gate"
    suite, log = write_suite(tmp_path, bags, "abc", splits=4, name="Gated", gate=str(gate), free=1)
    process = start_run(suite, store, "--scheduler", address)
    wait_for(lambda: len(workers(log)) == 2 and len(done_cells(store)) == 3, process)
    dask_workers[0].send_signal(signal.SIGKILL)
    kept = done_cells(store)
    gate.touch()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert done_cells(store) == {(label, split) for label in "abc" for split in range(4)}
    counts = fits(log)
    assert {cell: counts[cell] for cell in kept} == dict.fromkeys(kept, 1)


@pytest.mark.slow
def test_results_on_dask_equal_those_of_local_processes(tmp_path, cluster):
    from mipl.bench import Suite, run
    from mipl.bench.store import read_records

    address, _ = cluster
    suite = Suite(methods=["PL-kNN", "bench_methods:BrokenOnOddSplits"], datasets=["digits"], splits=3)
    failed = [run(suite, tmp_path / f"{i}.sqlite", scheduler=where) for i, where in enumerate((None, address))]
    assert failed == [1, 1]
    local, remote = (
        {
            r.cell.key: (r.outcome.scores.get("accuracy"), r.outcome.error)
            for r in read_records(tmp_path / f"{i}.sqlite")
        }
        for i in range(2)
    )
    assert local == remote


def test_a_scheduler_that_does_not_answer_is_a_clear_error():
    from mipl.bench.execution.on_dask import DaskExecutor
    from mipl.errors import UnavailableError

    with pytest.raises(UnavailableError, match="no Dask scheduler answers"):
        DaskExecutor("tcp://127.0.0.1:1", timeout=1)
