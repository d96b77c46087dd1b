"""Devices, threads and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from mipl.compute import limit_threads, seed_of, torch_device
from mipl.errors import MIPLError, ParameterError, UnavailableError


def test_a_device_of_this_machine_is_given():
    assert torch_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", 0, None, object()])
def test_a_name_that_is_no_device_is_a_wrong_parameter(name):
    with pytest.raises(ParameterError, match=r"device=.* is not"):
        torch_device(name)


@pytest.mark.parametrize("name", ["meta", "hpu", "xla", "cuda:99"])
def test_a_device_that_cannot_compute_here_is_unavailable(name):
    with pytest.raises(UnavailableError, match=f"device='{name}' is not available on this machine; use device='cpu'"):
        torch_device(name)


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_short_matrices_get_one_thread_and_long_ones_are_left_alone():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = blas_threads()
    with limit_threads(10, one_thread_up_to=10):
        assert blas_threads() == {1}
    with limit_threads(11, one_thread_up_to=10):
        assert blas_threads() == before
    with limit_threads(10**9, one_thread_up_to=math.inf):
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_threads_are_given_back_after_an_error():
    before = blas_threads()
    with pytest.raises(MIPLError), limit_threads(1, one_thread_up_to=10):
        raise ParameterError("wrong")
    assert blas_threads() == before


def test_an_integer_is_its_own_seed():
    assert seed_of(7) == 7
    assert seed_of(np.int32(7)) == 7


@pytest.mark.parametrize("generator", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_a_sequence_of_seeds_that_can_be_repeated(generator):
    first, again = generator(3), generator(3)
    seeds = [seed_of(first) for _ in range(5)]
    assert seeds == [seed_of(again) for _ in range(5)]
    assert len(set(seeds)) == 5
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)


def test_none_gives_a_fresh_seed_whatever_the_global_state():
    seeds = set()
    for _ in range(5):
        np.random.seed(0)  # noqa: NPY002
        seeds.add(seed_of(None))
    assert len(seeds) == 5
