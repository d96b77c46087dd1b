"""How cells run: in processes of this machine or on a Dask cluster, into a store, with a display of the progress."""

from mipl.bench.execution.run import run

__all__ = ["run"]
