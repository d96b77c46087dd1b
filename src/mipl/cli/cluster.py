"""``--scheduler``: the work of a command on an existing Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = ["SchedulerOption", "cluster_client"]

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Address of the scheduler of a Dask cluster that does the work, such as tcp://10.0.0.1:8786; its workers "
        "see the files under the same paths. Default: this machine.",
    ),
]


@contextmanager
def cluster_client(address: str | None) -> Iterator[Any]:
    """A client of the cluster at an address, None without one; it is closed in the end."""
    if address is None:
        yield None
        return
    from mipl.clusters import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()
