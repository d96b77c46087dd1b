"""MIPLGP on the low-rank engine gives the same model in memory, out of core and on a cluster of real processes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipl
from mipl import clusters
from mipl.errors import DataError, ParameterError
from mipl.miplgp import in_blocks

ARRAYS = ["instances_", "mean_", "solution_", "inverse_root_", "loss_curve_"]


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds for millions of instances, with hundreds: a sample for the landmarks, and several blocks."""
    monkeypatch.setattr(in_blocks, "LEAST_INSTANCES", 60)
    monkeypatch.setattr(in_blocks, "N_BLOCKS", 4)
    monkeypatch.setattr(in_blocks, "SAMPLE_INSTANCES", 200)
    monkeypatch.setattr(clusters, "WORKER_PATIENCE", 300.0)  # a busy machine takes long to start a worker


def data() -> mipl.MIPLDataset:
    return mipl.load("digits", r=1, seed=0)[:40]


def scan(folder: Path, ds: mipl.MIPLDataset) -> mipl.Scan:
    ds[:15].save(folder / "1.parquet")
    ds[15:].save(folder / "2.parquet")
    return mipl.scan(folder)


def model(**params: Any) -> mipl.MIPLGP:
    return mipl.MIPLGP(**({"engine": "low-rank", "n_landmarks": 30, "max_iter": 4} | params))


def assert_same_model(found: mipl.MIPLGP, wanted: mipl.MIPLGP) -> None:
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("disambiguation", ["released", "uniform", "softmax", "bag"])
def test_a_fit_to_files_is_the_fit_in_memory(tmp_path: Path, disambiguation: str) -> None:
    ds = data()
    inside = model(disambiguation=disambiguation).fit(ds)
    # Without memory for the distances they lie in a scratch file.
    outside = model(disambiguation=disambiguation, memory_budget=0).fit(scan(tmp_path, ds))
    assert_same_model(outside, inside)
    assert inside.weights_.shape == inside.noise_.shape == (ds.bags.n_instances, len(ds.classes) + 1)
    assert outside.weights_ is None
    assert outside.noise_ is None
    loaded = mipl.load_model(outside.save(tmp_path / "m.mipl"))
    for sampling in ("marginal", "joint", "mean"):
        answers = [each.set_params(sampling=sampling).predict_proba(ds) for each in (loaded, inside)]
        np.testing.assert_allclose(*answers, atol=1e-6)


def test_the_cut_into_blocks_changes_no_more_than_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = data()
    weight = np.tile([1.0, 2.5], 20)
    cut = model(disambiguation="bag").fit(ds, sample_weight=weight)
    monkeypatch.setattr(in_blocks, "LEAST_INSTANCES", 10_000)
    whole = model(disambiguation="bag").fit(ds, sample_weight=weight)
    np.testing.assert_allclose(cut.weights_, whole.weights_, atol=1e-5)
    np.testing.assert_allclose(cut.loss_curve_, whole.loss_curve_, rtol=1e-6)
    np.testing.assert_allclose(cut.predict_proba(ds), whole.predict_proba(ds), atol=1e-5)


def test_an_engine_that_needs_all_bags_at_once_says_so_and_what_to_use(tmp_path: Path) -> None:
    files = scan(tmp_path, data())
    words = 'engine="exact" needs all bags in memory.*use engine="low-rank", or fit.*sample'
    with pytest.raises(DataError, match=words):
        mipl.MIPLGP().fit(files)
    with pytest.raises(ParameterError, match='engine="exact" cannot be fitted on a cluster; use engine="low-'):
        mipl.MIPLGP().fit(data(), client=object())
    assert model(engine="auto").fit(files).engine_ == "low-rank"


# -------------------------------------------------------------------- a cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("distributed")
    from dask_cluster import Cluster

    found = Cluster(tmp_path_factory.mktemp("dask"))
    found.restore(2)
    yield found
    found.close()


def test_a_fit_on_a_cluster_is_the_fit_in_memory(cluster: Any, tmp_path: Path) -> None:
    ds = data()
    found = model(disambiguation="softmax").fit(scan(tmp_path, ds), client=cluster.client)
    assert_same_model(found, model(disambiguation="softmax").fit(ds))
    assert pickle.loads(pickle.dumps(found)).predict(ds).tolist() == found.predict(ds).tolist()
    weight = np.tile([1.0, 2.0], 20)
    there, here = (
        model(engine=engine).fit(ds, sample_weight=weight, client=client)
        for engine, client in (("auto", cluster.client), ("low-rank", None))
    )
    assert_same_model(there, here)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-6)


def test_a_worker_that_is_killed_and_one_that_comes_later_do_not_change_the_model(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import wait

    from mipl.baggp.on_dask import OnDask

    submit, seen = OnDask._submit, []

    def submit_and_kill(self: OnDask, function: Any, *rest: Any) -> list[Any]:
        futures = submit(self, function, *rest)
        seen.append(function.__name__)
        if seen.count("_of_rows") == 3 and function.__name__ == "_of_rows":
            with cluster.client.as_current():
                wait(futures, return_when="FIRST_COMPLETED")
            holder = next(found[0] for found in cluster.client.who_has(futures).values() if found)
            cluster.start_worker()
            cluster.kill(holder)
        return futures

    wanted = model(disambiguation="bag").fit(data())
    monkeypatch.setattr(OnDask, "_submit", submit_and_kill)
    try:
        assert_same_model(model(disambiguation="bag").fit(data(), client=cluster.client), wanted)
        assert seen.count("_of_rows") > 3
    finally:
        cluster.restore(2)
