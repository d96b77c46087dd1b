"""Where blocks are kept, and how many threads work on them, does not change a single bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from baggp_blocks import blocks_of, make_block

import mipl
from mipl.baggp import blocks as blocks_module
from mipl.baggp.blocks import Block, add_up, divide, tree_sum
from mipl.baggp.places import Local
from mipl.baggp.scratch import Scratch, release
from mipl.compute import in_own_thread


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut a few hundred instances into several runs."""
    monkeypatch.setattr(blocks_module.divide, "__defaults__", (100,))
    monkeypatch.setattr("mipl.baggp.estimator.JOINED_INSTANCES", 0)


def _arrays(model: mipl.BagGP) -> list[np.ndarray]:
    return [model.coef_, model.coef_variance_, model.stacking_weights_, model.posterior_, model.feature_map_]


def test_threads_and_scratch_files_give_the_same_bits(short_runs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = mipl.load("digits", r=1, seed=0).split(0.5, seed=0)
    plain = mipl.BagGP(n_landmarks=60).fit(train)
    spilled = mipl.BagGP(n_landmarks=60, memory_budget=0).fit(train)
    monkeypatch.setattr("mipl.baggp.estimator.ONE_THREAD_INSTANCES", 1)
    monkeypatch.setattr("mipl.baggp.estimator.torch.get_num_threads", lambda: 3)
    threaded = mipl.BagGP(n_landmarks=60).fit(train)
    for other in (spilled, threaded):
        for a, b in zip(_arrays(plain), _arrays(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_fit_leaves_the_number_of_threads_alone() -> None:
    before = torch.get_num_threads()
    seen = []
    in_own_thread(lambda: seen.append(torch.get_num_threads()), lambda: None)
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [1, before]
    assert torch.get_num_threads() == before


def test_a_block_in_a_scratch_file_is_the_same_block_after_its_memory_was_given_back() -> None:
    scratch = Scratch()
    block = make_block([3, 4])
    stored = scratch.put(block)
    release(stored)
    torch.testing.assert_close(stored.features, block.features, rtol=0, atol=0)
    stored.features.mul_(2)
    release(stored)
    torch.testing.assert_close(stored.features, 2 * block.features, rtol=0, atol=0)
    assert scratch.put(stored) is stored


def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(mipl.errors.UnavailableError, match=r"TMPDIR.*memory_budget"):
        Scratch().put(make_block([2]))


def test_a_stopped_fit_ends_at_its_next_block() -> None:
    place = Local()
    blocks = blocks_of(make_block([2]), make_block([3]))
    object.__setattr__(blocks, "place", place)
    seen = []

    def visit(block: Block) -> None:
        seen.append(len(block.sums))
        place.stop()

    with pytest.raises(InterruptedError):
        blocks.map(visit, blocks.features)
    assert seen == [1]


def test_a_tree_sums_up_everything_once() -> None:
    values = [(torch.tensor(float(i)), torch.tensor([1.0, -float(i)])) for i in range(100)]
    for n in (1, 2, 8, 9, 65, 100):
        found, expected = tree_sum(values[:n]), add_up(values[:n])
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_runs_are_divided_by_fold_and_every_bag_is_in_one_block() -> None:
    folds = np.array([0, 1, 0, 1, 2, 0, 2])
    for instances in (1, 10, 100):
        parts = divide(42, folds, instances)
        assert sorted(np.concatenate([part.bags for run in parts for part in run]).tolist()) == list(range(7))
        assert all((folds[part.bags] == part.fold).all() for run in parts for part in run)
        assert [int(run[0].bags.min()) for run in parts] == sorted(int(run[0].bags.min()) for run in parts)
