"""Devices, threads and seeds."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from mipl.compute import limit_torch, seed_of, share_out, shared_by, torch_device
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


def all_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info()]


def test_one_thread_is_for_the_calling_thread_alone_and_for_the_time_of_the_call():
    before, pools = torch.get_num_threads(), all_threads()
    seen = {}

    def look() -> None:
        seen["torch"], seen["all"] = torch.get_num_threads(), all_threads()

    with limit_torch(one_thread=True):
        assert torch.get_num_threads() == 1
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert seen == {"torch": before, "all": pools}
    assert (torch.get_num_threads(), all_threads()) == (before, pools)


def test_the_number_of_threads_is_left_alone_where_one_is_not_wanted():
    before = torch.get_num_threads()
    with limit_torch(one_thread=False):
        assert torch.get_num_threads() == before


def test_threads_are_given_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(MIPLError), limit_torch(one_thread=True):
        raise ParameterError("wrong")
    assert torch.get_num_threads() == before


def test_a_product_has_the_bits_of_one_thread_whatever_number_was_set():
    # In a process of its own: setting torch's number makes later factorisations of other tests hang on some builds.
    script = """
import torch
from mipl.compute import limit_torch
A = torch.randn(3000, 400, generator=torch.Generator().manual_seed(0))
products = []
for n_threads in (1, 2, 4):
    torch.set_num_threads(n_threads)
    with limit_torch(one_thread=True):
        products.append(A.T @ A)
    assert torch.get_num_threads() == n_threads
print([torch.equal(product, products[0]) for product in products])
"""
    found = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=600)
    assert found.strip() == "[True, True, True]"


def test_a_forked_process_computes_with_one_thread_and_does_not_wait_for_threads_that_are_gone():
    script = """
import multiprocessing, torch
import mipl
from mipl.small_problems import small_problem
bags, candidates, _ = small_problem()
models = [mipl.make(name, **params).fit(bags, candidates) for name, params in {
    "BagGP": {"n_landmarks": 20}, "MIPLGP": {"max_iter": 2}, "DEMIPL": {"max_epochs": 1}}.items()]
torch.set_num_threads(4)
torch.randn(3000, 3000).exp().sum()  # starts OpenMP's threads
many = mipl.Bags.concatenate([bags] * 200)

def work(queue):
    queue.put([float(model.predict_proba(many).sum()) for model in models])

queue = multiprocessing.get_context("fork").Queue()
child = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
child.start()
print(len(queue.get(timeout=550)))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert found.stdout.strip() == "3", found.stderr


def test_work_is_shared_out_by_the_thread_that_asked_for_it_and_by_no_other():
    def threads() -> set[int]:
        return set(share_out(lambda _: threading.get_ident(), range(8)))

    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as another:
        with shared_by(pool.map):
            shared, elsewhere = threads(), another.submit(threads).result()
        assert shared == {pool.submit(threading.get_ident).result()}
        assert elsewhere == {another.submit(threading.get_ident).result()}
        assert threads() == {threading.get_ident()}


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
