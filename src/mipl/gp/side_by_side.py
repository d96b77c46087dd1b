"""Two independent computations at the same time, each on half of torch's threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["side_by_side"]

A = TypeVar("A")
B = TypeVar("B")


def side_by_side(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Call both and return what they give; one after the other where there is one thread only.

    Work of many short steps gains little from threads within a step: two halves of the threads are better used apart.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return first(), second()
    try:
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(threads // 2,)) as pool:
            futures = pool.submit(first), pool.submit(second)
            return futures[0].result(), futures[1].result()
    finally:
        torch.set_num_threads(threads)
