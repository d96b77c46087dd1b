"""What everything that runs on an existing Dask cluster shares: a connection, patience, errors, one thread per task.

`distributed` is imported when it is first needed; it comes with the extra ``mipl[dask]``. Scheduler and workers need
mipl too, in the same version.
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from mipl import __version__
from mipl.compute import limit_torch
from mipl.errors import MIPLError, UnavailableError

__all__ = [
    "WORKER_PATIENCE",
    "check_versions",
    "cluster_errors",
    "completed",
    "connect",
    "dealt_out",
    "gather",
    "large_graphs_untold",
    "map_on_cluster",
    "n_threads",
    "same",
]

#: Seconds that the scheduler has to answer.
CONNECT_SECONDS = 10
#: Seconds for which a cluster may be without a worker that works; one that is started in time goes on with the work.
WORKER_PATIENCE = 60.0
#: Seconds between two looks at the cluster while its results are waited for.
_POLL_SECONDS = 1.0
#: Filters of warnings belong to the process, so that only one thread at a time may change them for a while.
_FILTERS = threading.Lock()
_SMALLER_CHUNKS = "fit a smaller model (rank, n_landmarks)"


def connect(address: str, timeout: float = CONNECT_SECONDS) -> Any:
    """A client of the Dask scheduler at an address.

    Parameters
    ----------
    address : str
        Where the scheduler listens, for example ``tcp://10.0.0.1:8786``.
    timeout : float, default=10
        Seconds that it has to answer.

    Raises
    ------
    UnavailableError
        Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UnavailableError("a Dask cluster needs Dask here too: pip install 'mipl[dask]'") from error
    try:
        return Client(address, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(f"no Dask scheduler answers at {address}: {error}") from error


def address_of(client: Any) -> str:
    """Where the scheduler of a client listens, for messages."""
    scheduler = getattr(client, "scheduler", None)
    found = getattr(scheduler, "address", None) or getattr(client, "_start_arg", None)
    return str(found)


# -------------------------------------------------------------------- errors


@contextmanager
def cluster_errors(client: Any, advice: str) -> Iterator[None]:
    """Turn what can go wrong with a cluster into one `UnavailableError` that says what to do.

    Parameters
    ----------
    client : distributed.Client
        Its client.
    advice : str
        What to lower where memory is short.
    """
    try:
        yield
    except (MIPLError, InterruptedError):
        raise
    except Exception as error:
        meant = _meaning(error, client, advice)
        if meant is None:
            raise
        raise UnavailableError(meant) from error


def _meaning(error: Exception, client: Any, advice: str) -> str | None:
    """What an error says of the cluster at hand; None where it is an error of the work itself."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm.core import CommClosedError

    address = address_of(client)
    if isinstance(error, KilledWorker):
        return (
            f"one worker after the other of the Dask cluster at {address} died over the same piece of work, as they do "
            f"when memory is short; {advice}, or give the workers more memory"
        )
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error)):
        return f"a worker of the Dask cluster at {address} ran out of memory; {advice}, or give the workers more memory"
    if client.status == "running" and isinstance(error, FileNotFoundError | PermissionError):
        return (
            f"a worker of the Dask cluster at {address} cannot read the data: {error}; all workers must see the files "
            "under the same paths"
        )
    if client.status != "running" or isinstance(error, CancelledError | CommClosedError | TimeoutError | OSError):
        return f"the Dask scheduler at {address} has gone or has given up the work: {error}; start it and run again"
    return None


def check_versions(client: Any) -> None:
    """Warn where workers have other versions of mipl, torch or NumPy than this process.

    Raises
    ------
    UnavailableError
        A worker has no mipl.
    OSError
        The client has lost its scheduler.
    """
    limit = time.monotonic() + CONNECT_SECONDS
    while client.status == "connecting" and time.monotonic() < limit:
        time.sleep(0.1)
    if client.status != "running":  # anything that it is asked now would wait for long
        raise OSError("the connection is lost")
    own = versions_here()
    found = client.run(versions_here, on_error="return")
    different: dict[str, set[str]] = {}
    for worker, theirs in found.items():
        if isinstance(theirs, ImportError):
            raise UnavailableError(f"the Dask worker at {worker} cannot import mipl: {theirs}; install mipl there")
        if isinstance(theirs, Exception):  # a worker that has just died
            continue
        for name, value in theirs.items():
            if value != own[name]:
                different.setdefault(name, set()).add(value)
    if different:
        listed = ", ".join(f"{name} {' and '.join(sorted(v))} (here {own[name]})" for name, v in different.items())
        warnings.warn(
            f"workers of the Dask cluster have {listed}; with unequal versions results may differ in the last digits, "
            "or work may fail",
            UserWarning,
            stacklevel=2,
        )


def versions_here() -> dict[str, str]:
    """The versions of what results depend on, in this process."""
    return {"mipl": __version__, **{name: version(name) for name in ("torch", "numpy")}}


# -------------------------------------------------------------------- results


def gather(client: Any, futures: Sequence[Any], advice: str, check: Callable[[], None] = lambda: None) -> list[Any]:
    """The results of futures, or an error as soon as it is clear that there will be none.

    Parameters
    ----------
    client : distributed.Client
        Whose futures they are.
    futures : sequence of distributed.Future
        What is waited for.
    advice : str
        What to lower where memory is short.
    check : callable, default=nothing is checked
        Is called every second; an error that it raises ends the wait.
    """
    with cluster_errors(client, advice):
        _wait(client, futures, advice, check)
        return list(client.gather(list(futures)))


def completed(client: Any, futures: Sequence[Any], advice: str) -> Iterator[tuple[Any, Any]]:
    """Futures with their results, as they are done; errors as in `gather`.

    Parameters
    ----------
    client : distributed.Client
        Whose futures they are.
    futures : sequence of distributed.Future
        What is waited for.
    advice : str
        What to lower where memory is short.
    """
    left = list(futures)
    while left:
        with cluster_errors(client, advice):
            _wait(client, left, advice, lambda: None, "FIRST_COMPLETED")
            done = [future for future in left if future.done()]
            results = client.gather(done)
        yield from zip(done, results, strict=True)
        left = [future for future in left if future not in done]


def _wait(
    client: Any, futures: Sequence[Any], advice: str, check: Callable[[], None], until: str = "ALL_COMPLETED"
) -> None:
    from distributed import wait

    working = time.monotonic()
    while True:
        check()
        try:
            with client.as_current():  # the client is nobody's default
                wait(list(futures), timeout=_POLL_SECONDS, return_when=until)
            return
        except TimeoutError:
            if client.status != "running":
                raise OSError("the connection is lost") from None
            workers = client.scheduler_info()["workers"].values()
            if any(worker.get("status", "running") == "running" for worker in workers):
                working = time.monotonic()
            elif time.monotonic() - working > WORKER_PATIENCE:
                raise _no_worker(client, bool(workers), advice) from None


def n_threads(client: Any) -> int:
    """The threads of all workers of a cluster, one at least."""
    with cluster_errors(client, _SMALLER_CHUNKS):
        return max(1, sum(int(n) for n in client.nthreads().values()))


def dealt_out(
    client: Any, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], keys: Sequence[Any]
) -> list[Any]:
    """Futures of calls, as many for each thread of a cluster, that need nothing that lies on one worker alone.

    Left to itself, the scheduler would send all of them to the worker that holds what they share, and leave them there
    as long as it does not know how long such tasks take.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    function : callable
        What is called.
    tasks : sequence of tuple
        The arguments of each call.
    keys : sequence
        The names of the futures.
    """
    threads = [worker for worker, n in client.nthreads().items() for _ in range(n)]
    found = []
    for i, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        where = {"workers": threads[i * len(threads) // len(tasks)], "allow_other_workers": True} if threads else {}
        found.append(client.submit(function, *task, key=key, pure=False, **where))
    return found


def map_on_cluster(client: Any, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """What a function gives for each of some values, computed by the workers of a cluster with one thread each.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    function : callable
        It is sent once, and fetched by the workers from each other.
    values : sequence
        They are sent with their tasks, so they should be small.
    """
    name = f"mipl-map-{uuid.uuid4().hex[:12]}"
    if not values:
        return []
    with cluster_errors(client, _SMALLER_CHUNKS), large_graphs_untold():  # a model is as large as it is
        check_versions(client)
        sent = client.submit(same, function, key=(f"{name}-function", 0), pure=False)
        keys = [(name, i) for i in range(len(values))]
        futures = dealt_out(client, _call, [(value, sent) for value in values], keys)
    try:
        return gather(client, futures, _SMALLER_CHUNKS)
    finally:
        for future in (sent, *futures):  # not when some traceback that refers to them is collected
            future.release()


@contextmanager
def large_graphs_untold() -> Iterator[None]:
    """No warnings of Dask that much is sent with tasks."""
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield


def _no_worker(client: Any, paused: bool, advice: str) -> UnavailableError:
    address, seconds = address_of(client), f"{WORKER_PATIENCE:g} s"
    if paused:
        return UnavailableError(
            f"all workers of the Dask cluster at {address} have paused for {seconds} since their memory is full; "
            f"{advice}, or give the workers more memory"
        )
    return UnavailableError(
        f"the Dask cluster at {address} has had no worker for {seconds}; start one and run again. If they were killed "
        f"for want of memory, {advice}, or give them more"
    )


# -------------------------------------------------------------------- inside a task


def same(value: Any) -> Any:
    """The value itself: a task whose result other workers fetch, and which can be computed anew when it is lost."""
    return value


def _call(value: Any, function: Callable[[Any], Any]) -> Any:
    with limit_torch(one_thread=True):
        return function(value)
