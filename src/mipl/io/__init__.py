"""Data set files: one module per format, chosen by the suffix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mipl.io.atomic import atomic_path, check_writable

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["SUFFIXES", "read", "write"]

#: suffix -> module with ``write(dataset, path)``; more formats are read, see `mipl.io.sources.READERS`.
SUFFIXES = {
    ".parquet": "mipl.io.parquet",
    ".npz": "mipl.io.npz",
    ".csv": "mipl.io.csv",
    ".mat": "mipl.io.mat",
    ".jsonl": "mipl.io.jsonl",
    ".feather": "mipl.io.feather",
}


def read(path: str | Path) -> MIPLDataset:
    """Read a data set; the suffix chooses the format, and `mipl.load` takes options for its columns."""
    dataset: MIPLDataset = import_module("mipl.io.sources").read_files([path]).dataset
    return dataset


def write(dataset: MIPLDataset, path: str | Path) -> Path:
    """Write a data set, whole or not at all; the suffix chooses the format."""
    file = Path(path)
    check_writable(file, SUFFIXES)
    with atomic_path(file) as temporary:
        import_module(SUFFIXES[file.suffix.lower()]).write(dataset, temporary)
    return file
