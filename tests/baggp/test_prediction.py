"""Predictions one bag at a time and all at once, in one thread and in many, and what a model keeps for them."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from quick_methods import quick
from threadpoolctl import threadpool_info, threadpool_limits

import mipl
from mipl.baggp import prediction
from mipl.baggp.prediction import PREDICTS_FROM
from mipl.bags import Bags
from mipl.mil import MIVAE
from mipl.small_problems import small_problem


@pytest.fixture(scope="module")
def digits() -> tuple[mipl.BagGP, Bags]:
    train, test = mipl.load("digits", r=1, seed=0).split(0.3, seed=0)
    return mipl.BagGP(n_landmarks=150, rank=100, cross_fit=0).fit(train), test.bags


def test_a_bag_alone_gets_the_probabilities_that_it_gets_in_a_batch(digits) -> None:
    model, bags = digits
    sizes = np.array([1, 2, 3, 5, 8, 13, 21, 40, 100])
    rows = np.random.default_rng(0).integers(0, bags.n_instances, sizes.sum())
    mixed = Bags(bags.instances[rows], np.concatenate([[0], np.cumsum(sizes)]), bags.instance_shape)
    together, instances = model.predict_proba(mixed), model.predict_instances(mixed)
    alone = np.concatenate([model.predict_proba(mixed[i : i + 1]) for i in range(len(mixed))])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)
    alone = np.concatenate([model.predict_instances(mixed[i : i + 1]) for i in range(len(mixed))])
    np.testing.assert_allclose(alone, instances, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(digits, monkeypatch, n_threads: int) -> None:
    model, bags = digits
    expected = model.predict_proba(bags)
    monkeypatch.setattr("mipl.baggp.prediction.PREDICTION_ROWS", 64)
    monkeypatch.setattr("mipl.baggp.estimator.torch.get_num_threads", lambda: n_threads)
    np.testing.assert_array_equal(model.predict_proba(bags), expected)


def test_a_bag_that_two_threads_share_gets_the_same_bits(digits, monkeypatch) -> None:
    model, bags = digits
    expected = model.predict_proba(bags[:3])
    monkeypatch.setattr("mipl.baggp.prediction.SHARED_PRODUCTS", 0)
    monkeypatch.setattr("mipl.baggp.estimator.torch.get_num_threads", lambda: 2)
    asked = []
    helper = prediction._helper
    monkeypatch.setattr(prediction, "_helper", lambda process: asked.append(process) or helper(process))
    np.testing.assert_array_equal(model.predict_proba(bags[:3]), expected)
    with ThreadPoolExecutor(8) as pool:  # more callers than the one helper can serve
        for found in pool.map(lambda _: model.predict_proba(bags[:3]), range(40)):
            np.testing.assert_array_equal(found, expected)
    assert len(asked) == 41


def test_a_forked_process_predicts_with_a_helper_of_its_own(digits, monkeypatch) -> None:
    model, bags = digits
    monkeypatch.setattr("mipl.baggp.prediction.SHARED_PRODUCTS", 0)
    monkeypatch.setattr("mipl.baggp.estimator.torch.get_num_threads", lambda: 2)
    expected = model.predict_proba(bags[:3])  # the helper's thread runs from here on
    child = multiprocessing.get_context("fork").Process(
        target=lambda: np.testing.assert_array_equal(model.predict_proba(bags[:3]), expected)
    )
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("name", ["BagGP", "MIPLGP", "PL-kNN", "LSB-CMM", "VGPMIL", "MIVAE", "DEMIPL"])
def test_eight_threads_that_predict_leave_all_numbers_of_threads_alone(name: str) -> None:
    bags, candidates, _ = small_problem()
    model = quick(name).fit(bags, candidates)

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info()]

    with threadpool_limits(3), ThreadPoolExecutor(8) as pool:
        expected = model.predict_proba(bags)  # with as many threads: OpenBLAS has other last digits with others
        before, seen = threads(), []
        running = [pool.submit(model.predict_proba, bags) for _ in range(24)]
        while not all(each.done() for each in running):
            seen.append(threads())
        assert max(before) == 3
        assert all(each == before for each in [*seen, threads()])
    for each in running:
        np.testing.assert_array_equal(each.result(), expected)


def test_fits_of_mivae_in_threads_draw_from_generators_of_their_own() -> None:
    bags, candidates, _ = small_problem()
    y = candidates[:, 0].astype(int)
    state = torch.get_rng_state()

    def losses(seed: int) -> list[float]:
        return MIVAE(hidden_dim=8, latent_dim=2, max_epochs=4, random_state=seed).fit(bags, y).losses_.tolist()

    expected = [losses(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(losses, range(4))) == expected
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_kept_for_predictions_is_built_once_and_never_leaves_the_process(digits, tmp_path) -> None:
    model, bags = digits
    loaded = mipl.load_model(model.save(tmp_path / "m.mipl"))
    fresh = len(pickle.dumps(loaded))
    expected = loaded.predict_proba(bags)
    kept = loaded._ready()
    loaded.predict_instances(bags)
    assert loaded._ready() is kept
    assert len(pickle.dumps(loaded)) == fresh
    for other in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert "_kept" not in vars(other)
        np.testing.assert_array_equal(other.predict_proba(bags), expected)


@pytest.mark.parametrize("name", ["coef_", "intercept_", "class_offset_", "landmarks_", "stacking_weights_"])
def test_an_attribute_that_is_assigned_is_used(digits, name: str) -> None:
    model, bags = digits
    changed = copy.deepcopy(model)
    before = changed.predict_proba(bags)
    setattr(changed, name, 3 * getattr(changed, name)[..., ::-1])
    assert name in PREDICTS_FROM
    assert not np.allclose(changed.predict_proba(bags), before)


def test_a_second_fit_drops_what_the_first_kept() -> None:
    bags, candidates, _ = small_problem()
    model = quick("BagGP").fit(bags, candidates)
    model.predict(bags)
    first = model._ready()
    references = sys.getrefcount(first)
    model.fit(bags[:12], candidates[:12])
    assert "_kept" not in vars(model)
    assert sys.getrefcount(first) == references - 1


def test_threads_that_predict_for_the_first_time_at_once_agree(digits) -> None:
    model, bags = digits
    expected = model.predict_proba(bags)
    for _ in range(3):
        fresh = copy.deepcopy(model)
        barrier = threading.Barrier(6)

        def predict(fresh=fresh, barrier=barrier) -> np.ndarray:
            barrier.wait()
            return fresh.predict_proba(bags)

        with ThreadPoolExecutor(6) as pool:
            found = [each.result() for each in [pool.submit(predict) for _ in range(6)]]
        for each in found:
            np.testing.assert_array_equal(each, expected)


def test_many_predictions_do_not_grow_the_memory() -> None:
    resource = pytest.importorskip("resource")
    bags, candidates, _ = small_problem()
    model = quick("BagGP").fit(bags, candidates)
    for _ in range(50):
        model.predict(bags[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        model.predict(bags[:1])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KiB
