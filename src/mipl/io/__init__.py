"""Data set files: one module per format, chosen by the suffix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mipl.errors import DataError
from mipl.io.atomic import atomic_path, check_writable

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["SUFFIXES", "read", "write"]

#: suffix -> module with ``read(path) -> MIPLDataset`` and ``write(dataset, path)``.
SUFFIXES = {
    ".parquet": "mipl.io.parquet",
    ".npz": "mipl.io.npz",
    ".csv": "mipl.io.csv",
    ".mat": "mipl.io.mat",
}


def read(path: str | Path) -> MIPLDataset:
    """Read a data set; the suffix chooses the format."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise DataError(f"cannot tell the format of {file}; its suffix must be one of {', '.join(SUFFIXES)}")
    if not file.is_file():
        raise DataError(f"no such file: {file}")
    return import_module(SUFFIXES[file.suffix.lower()]).read(file)


def write(dataset: MIPLDataset, path: str | Path) -> Path:
    """Write a data set, whole or not at all; the suffix chooses the format."""
    file = Path(path)
    check_writable(file, SUFFIXES)
    with atomic_path(file) as temporary:
        import_module(SUFFIXES[file.suffix.lower()]).write(dataset, temporary)
    return file
