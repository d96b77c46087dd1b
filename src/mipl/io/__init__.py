"""Data set files: one module a format, chosen by the suffix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mipl.errors import DataError

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
    module = _module_for(file)
    if not file.is_file():
        raise DataError(f"no such file: {file}")
    return import_module(module).read(file)


def write(dataset: MIPLDataset, path: str | Path) -> Path:
    """Write a data set, whole or not at all; the suffix chooses the format."""
    from mipl.io.atomic import atomic_path

    file = Path(path)
    module = import_module(_module_for(file))
    with atomic_path(file) as temporary:
        module.write(dataset, temporary)
    return file


def _module_for(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"cannot tell the format of {path}; its suffix must be one of {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]
