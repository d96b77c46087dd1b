"""`mipl.load`: a data set by its name or from a file."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from mipl.dataset import MIPLDataset
from mipl.datasets.registry import builder, dataset_names
from mipl.errors import DataError
from mipl.io import SUFFIXES, read

__all__ = ["load"]


def load(source: str | Path, **options: Any) -> MIPLDataset:
    """Load a data set by its name (``"digits"``, ``"mnist"``, ...) or from a file.

    Parameters
    ----------
    source : str or Path
        A name of `mipl.datasets.dataset_names()`, or the path of a .parquet, .npz, .csv or .mat file.
    **options
        For a name: ``r`` (false positive labels per bag, default 1), ``seed`` (default 0) and what else the data set's
        builder takes. A file takes none.

    Examples
    --------
    >>> ds = load("digits", r=1, seed=0)
    >>> ds.candidates.sum(axis=1).max()
    np.int64(2)
    """
    if isinstance(source, str) and source in dataset_names():
        build = builder(source)
        known = inspect.signature(build).parameters
        for name in options:
            if name not in known:
                raise DataError(f"{source} has no option {name!r}; it has {', '.join(known)}")
        return build(**options)
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        if path.exists():
            raise DataError(f"cannot tell the format of {path}; its suffix must be one of {', '.join(SUFFIXES)}")
        raise DataError(
            f"{str(source)!r} is neither a data set ({', '.join(dataset_names())}) nor a file with a suffix of "
            f"{', '.join(SUFFIXES)}"
        )
    if options:
        raise DataError(f"a file takes no options; {', '.join(options)} apply to data sets by name only")
    return read(path)
