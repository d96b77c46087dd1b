"""What numerical methods ask of the machine: a device, a number of threads, a seed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from mipl.errors import ParameterError, UnavailableError

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

__all__ = [
    "free_memory",
    "in_own_thread",
    "limit_torch",
    "seed_of",
    "share_out",
    "shared_by",
    "torch_device",
    "use_one_thread",
]


def torch_device(name: str) -> torch.device:
    """The torch device of that name.

    Parameters
    ----------
    name : str
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"`` or another of torch's devices.

    Raises
    ------
    ParameterError
        If torch knows no device of that name.
    UnavailableError
        If this machine has no such device, or numbers cannot be read back from it.
    """
    import torch

    if not isinstance(name, str):  # torch takes integers too, and means an accelerator by them
        raise ParameterError(f"device={name!r} is not the name of a device; use 'cpu', 'cuda', 'cuda:1' or 'mps'")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ParameterError(f"device={name!r} is not a torch device; use 'cpu', 'cuda', 'cuda:1' or 'mps'") from error
    if device.type == "cpu":
        return device
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, ImportError) as error:
        raise UnavailableError(f"device={name!r} is not available on this machine; use device='cpu'") from error
    return device


@contextmanager
def limit_torch(*, one_thread: bool) -> Iterator[None]:
    """Keep torch to one thread in the calling thread, for the time of a call; else leave the number alone.

    The numbers of threads of OpenMP and of MKL, with which torch computes, are set for the calling thread alone, so no
    other thread notices. That of OpenBLAS, with which NumPy and SciPy compute, belongs to the process and is never
    changed.

    In a process that was forked, one thread is used in any case: the OpenMP threads of its parent are gone, and a
    computation that waited for them would wait for ever.

    Parameters
    ----------
    one_thread : bool
        Whether one thread is wanted. On short matrices threads wait for each other longer than they work; and one
        thread gives the same bits whatever the number of threads is.
    """
    if not (one_thread or _forked):
        yield
        return
    set_mkl = _mkl_setter()
    with _openmp().limit(limits=1):
        before = set_mkl(1)
        try:
            yield
        finally:
            set_mkl(before)


def use_one_thread() -> None:
    """Keep torch to one thread in the calling thread, for good: meant for threads of one's own."""
    _openmp().limit(limits=1)
    _mkl_setter()(1)


def _openmp() -> ThreadpoolController:
    import torch

    torch.get_num_threads()  # torch sets its number when a thread first asks for it, and would overwrite ours
    return _loaded_openmp()


@cache
def _loaded_openmp() -> ThreadpoolController:
    """The OpenMP libraries of the process; looking for them takes longer than many a prediction."""
    return ThreadpoolController().select(user_api="openmp")


@cache
def _mkl_setter() -> Callable[[int], int]:
    """MKL's function that sets the number of threads of the calling thread and returns the one before.

    ``torch.set_num_threads`` gives MKL a number of its own, which counts for more than OpenMP's.
    """
    import torch

    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        function: Callable[[int], int] = library.MKL_Set_Num_Threads_Local
    except (OSError, AttributeError):  # a build of torch without MKL
        return lambda n: n
    return function


#: Whether this process was forked from one that had imported this module.
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def in_own_thread(function: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run a function in a thread of its own that computes with one thread, and wait for it.

    Parameters
    ----------
    function : callable
        What to run.
    stop : callable
        Called if the wait is interrupted, as by Ctrl-C; it lets the function end soon.
    """
    with ThreadPoolExecutor(1, initializer=use_one_thread) as pool:
        future = pool.submit(function)
        try:
            return future.result()
        except BaseException:
            stop()
            raise


#: How the calling thread shares work out, see `shared_by`.
_mapping: ContextVar[Callable[..., Iterable[Any]]] = ContextVar("mapping", default=map)


@contextmanager
def shared_by(mapping: Callable[..., Iterable[Any]]) -> Iterator[None]:
    """Let what the calling thread gives to `share_out` be done by `mapping`, such as `map` of a pool of threads.

    A transformer deep within a pipeline of scikit-learn is reached by no argument. No other thread is affected.
    """
    token = _mapping.set(mapping)
    try:
        yield
    finally:
        _mapping.reset(token)


def share_out(function: Callable[[Any], T], values: Iterable[Any]) -> Iterable[T]:
    """Results of a function in order, by the threads of the fit that the calling thread works for, else by itself."""
    return _mapping.get()(function, values)


def give_memory_back() -> None:
    """Give the system what was freed between pieces of memory that are in use; without glibc nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def free_memory() -> float:
    """Bytes of memory that can be had without anything being swapped out."""
    try:
        with open("/proc/meminfo") as file:
            fields = dict(line.split(":", 1) for line in file)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):  # not Linux
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) / 2


def seed_of(random_state: Any) -> int:
    """An integer seed from what scikit-learn takes as `random_state`.

    Parameters
    ----------
    random_state : int, None, numpy.random.RandomState or numpy.random.Generator
        An int is its own seed; None gives a fresh one each time; a generator is drawn from, which advances it.

    Examples
    --------
    >>> seed_of(3)
    3
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(random_state)
