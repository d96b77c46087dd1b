"""A fit on a cluster of real processes is the fit in this process, to the last bit, whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mipl
from mipl import clusters
from mipl.baggp import blocks as blocks_module
from mipl.baggp.blocks import Column
from mipl.baggp.places import Local
from mipl.errors import UnavailableError
from mipl.progress import Phases

pytest.importorskip("distributed")

from bench_runs import PATIENCE
from dask_cluster import Cluster, few_steps
from distributed import wait

from mipl.baggp.on_dask import OnDask

ARRAYS = ["coef_", "coef_variance_", "stacking_weights_", "posterior_", "feature_map_", "landmarks_", "bag_digests_"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("dask"))
    found.restore(2)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds for millions of instances, with hundreds: a sample for the landmarks, and several runs."""
    monkeypatch.setattr(blocks_module.divide, "__defaults__", (150,))
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", 200)
    monkeypatch.setattr("mipl.baggp.estimator.JOINED_INSTANCES", 0)
    monkeypatch.setattr(clusters, "WORKER_PATIENCE", 300.0)  # a busy machine takes long to start a worker
    few_steps(monkeypatch)


def data(seed: int = 0) -> mipl.MIPLDataset:
    return mipl.load("digits", r=1, seed=seed)[:40]


def model(cross_fit: int = 0, **params: Any) -> mipl.BagGP:
    """A small model; cross-fitting takes the same steps again."""
    return mipl.BagGP(n_landmarks=30, cross_fit=cross_fit, **params)


def assert_same_bits(found: mipl.BagGP, wanted: mipl.BagGP) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_a_fit_to_files_on_a_cluster_is_the_fit_in_this_process(cluster: Cluster, tmp_path: Path, monkeypatch) -> None:
    ds = data()
    ds[:20].save(tmp_path / "1.parquet")
    ds[20:].save(tmp_path / "2.parquet")
    monkeypatch.chdir(tmp_path)  # workers have another working directory
    inside = model(cross_fit=2).fit(mipl.scan("."))
    phases: list[str] = []
    watched = Phases(lambda phase, *_: phases.append(phase))
    monkeypatch.setattr("mipl.baggp.estimator.show_phases", lambda title, *, verbose: nullcontext(watched))
    outside = model(cross_fit=2, verbose=True).fit(mipl.scan("."), client=cluster.client)
    assert_same_bits(outside, inside)
    assert set(phases) > {"landmarks", "features", "bag likelihood"}
    assert pickle.loads(pickle.dumps(outside)).predict(ds).tolist() == inside.predict(ds).tolist()
    loaded = mipl.load_model(outside.save(tmp_path / "m.mipl"))
    np.testing.assert_array_equal(loaded.predict_proba(ds), inside.predict_proba(ds))
    # Nothing of the fit is left behind.
    limit = time.monotonic() + PATIENCE
    while any(cluster.client.has_what().values()) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not any(cluster.client.has_what().values())


def test_more_workers_than_runs_and_weights(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module.divide, "__defaults__", (10_000,))  # one run: a worker has no bags
    ds = data()
    weight = np.tile([1.0, 2.0], 20)
    found, wanted = (model().fit(ds, sample_weight=weight, client=client) for client in (cluster.client, None))
    assert_same_bits(found, wanted)


def test_killed_workers_and_one_that_comes_later_do_not_change_a_bit(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, seen, killed = OnDask._submit, {"_block": 0, "likelihood_statistics": 0}, []

    def submit_and_kill(self: OnDask, function: Any, *rest: Any) -> list[Any]:
        futures = submit(self, function, *rest)
        name = function.__name__
        if name in seen:
            seen[name] += 1
            if (name, seen[name]) in (("_block", 1), ("likelihood_statistics", 3)):
                with cluster.client.as_current():
                    wait(futures, return_when="FIRST_COMPLETED")
                holder = next(found[0] for found in cluster.client.who_has(futures).values() if found)
                cluster.start_worker()
                cluster.kill(holder)
                killed.append(name)
        return futures

    wanted = model().fit(data())
    monkeypatch.setattr(OnDask, "_submit", submit_and_kill)
    try:
        assert_same_bits(model().fit(data(), client=cluster.client), wanted)
        assert killed == ["_block", "likelihood_statistics"]
    finally:
        cluster.restore(2)


def test_two_fits_at_once_do_not_meet(cluster: Cluster) -> None:
    found: dict[int, mipl.BagGP] = {}

    def fit(seed: int) -> None:
        found[seed] = model(random_state=seed).fit(data(seed), client=cluster.client)

    threads = [threading.Thread(target=fit, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        assert_same_bits(found[seed], model(random_state=seed).fit(data(seed)))


def test_large_parameters_of_steps_with_one_task_each_do_not_meet() -> None:
    from distributed import Client, LocalCluster

    # A scheduler in this process knows how large tensors are, and would name large arguments by their parameter.
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0", "memory_limit": 0}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, **options) as local,
        Client(local, set_as_default=False) as client,
    ):
        place, column = OnDask(client), Column.of([[0]])
        for k in (1, 2):
            found = place.map(lambda _, given: float(given.sum()), [column], {"given": torch.ones(10**6) * k})
            assert place.fetch(found) == [k * 1e6]


@pytest.mark.parametrize("n_runs", [3, 20, 40])  # bundles for each worker, parts of groups of the tree, whole groups
def test_sums_are_taken_in_the_same_order_as_in_this_process(cluster: Cluster, n_runs: int) -> None:
    rng = torch.Generator().manual_seed(0)
    runs = [[torch.randn(3, generator=rng) * 10.0 ** (k % 20) for _ in range(2)] for k in range(n_runs)]
    column, place = Column(runs, [[1, 0]] * (n_runs - 1) + [[1]]), OnDask(cluster.client)

    def scaled(values: torch.Tensor, factor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (values * factor.sum(), values.double().exp())

    for factor in (torch.ones(2), torch.full((2000,), 1e-3)):  # sent with the tasks, and once for all of them
        found, wanted = (p.total(scaled, [column], {"factor": factor}) for p in (place, Local()))
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    remote = place.map(lambda values: values + 1, [column], {})
    kept = Column(remote.runs[:2], [[1], [0, 1]])
    assert [v.tolist() for v in place.fetch(kept)] == [(runs[r][i] + 1).tolist() for r, i in ((0, 0), (1, 1), (1, 0))]


def test_a_task_keeps_torch_to_one_thread_and_gives_the_threads_back(cluster: Cluster) -> None:
    place = OnDask(cluster.client)
    cluster.client.run(torch.set_num_threads, 3)
    inside = place.fetch(place.map(lambda _: torch.get_num_threads(), [Column.of([[0], [0]])], {}))
    assert inside == [1, 1]


def test_first_blocks_are_dealt_out_to_all_workers_though_one_of_them_holds_the_parameters(cluster: Cluster) -> None:
    place, column = OnDask(cluster.client), Column.of([[0], [0]])

    def where(_: int, given: torch.Tensor) -> tuple[int, float]:
        time.sleep(0.2)  # long enough for the other one to be asked
        return os.getpid(), float(given.sum())

    found = place.fetch(place.map(where, [column], {"given": torch.ones(10**6)}))
    assert len({process for process, _ in found}) == 2
    assert [total for _, total in found] == [1e6, 1e6]


def test_a_worker_that_cannot_allocate_is_an_error_that_says_what_to_lower(cluster: Cluster) -> None:
    place = OnDask(cluster.client)
    with pytest.raises(UnavailableError, match=rf"{cluster.address} ran out of memory; lower rank or n_landmarks"):
        place.fetch(place.map(lambda _: torch.empty(1 << 60), [Column.of([[0]])], {}))


def test_a_stopped_fit_ends(cluster: Cluster) -> None:
    place = OnDask(cluster.client)
    place.stop()
    with pytest.raises(InterruptedError):
        place.map(lambda _: 1, [Column.of([[0]])], {})


def test_a_cluster_that_falls_apart_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.py").write_text("import mipl\nmipl.__version__ = '0.0.1'\n")
    cluster = Cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    try:
        cluster.start_worker("--preload", str(tmp_path / "old.py"))
        cluster.wait_for_workers(1)
        with pytest.warns(UserWarning, match=r"mipl 0\.0\.1 \(here ") as told:
            place = OnDask(cluster.client)
        assert len(told) == 1

        def die(_: int) -> None:  # as the system ends a process when memory is short
            import os

            os.kill(os.getpid(), 9)

        with pytest.raises(UnavailableError, match=rf"{cluster.address} died.*lower rank or n_landmarks.*more memory"):
            place.fetch(place.map(die, [Column.of([[0]])], {}))

        monkeypatch.setattr(clusters, "WORKER_PATIENCE", 1.0)
        with pytest.raises(UnavailableError, match=rf"{cluster.address} has had no worker for 1 s.*lower rank"):
            place.fetch(place.map(lambda _: 1, [Column.of([[0]])], {}))

        monkeypatch.setattr(clusters, "WORKER_PATIENCE", 300.0)
        column = place.map(lambda _: 1, [Column.of([[0]])], {})
        cluster.scheduler.kill()
        start = time.monotonic()
        with pytest.raises(UnavailableError, match=rf"the Dask scheduler at {cluster.address} has gone"):
            place.fetch(column)
        with pytest.raises(UnavailableError, match=rf"the Dask scheduler at {cluster.address} has gone"):
            model().fit(data(), client=cluster.client)
        assert time.monotonic() - start < 200  # it has not waited for workers
    finally:
        cluster.close()


def test_equal_versions_are_no_warning(cluster: Cluster) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters.check_versions(cluster.client)
