"""Data set files: one module per format, chosen by the suffix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mipl.io.atomic import atomic_path, check_writable

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["SUFFIXES", "read", "write"]

#: suffix -> module and function ``write(dataset, path)``; more formats are read, see `mipl.io.sources.READERS`.
SUFFIXES = {
    ".parquet": "mipl.io.parquet:write",
    ".npz": "mipl.io.arrays:write_npz",
    ".csv": "mipl.io.text:write",
    ".mat": "mipl.io.arrays:write_mat",
    ".jsonl": "mipl.io.jsonl:write",
    ".feather": "mipl.io.parquet:write_feather",
}


def read(path: str | Path) -> MIPLDataset:
    """Read a data set; the suffix chooses the format, and `mipl.load` takes options for its columns."""
    dataset: MIPLDataset = import_module("mipl.io.sources").read_files([path]).dataset
    return dataset


def write(dataset: MIPLDataset, path: str | Path) -> Path:
    """Write a data set, whole or not at all; the suffix chooses the format."""
    file = Path(path)
    check_writable(file, SUFFIXES)
    module, function = SUFFIXES[file.suffix.lower()].split(":")
    with atomic_path(file) as temporary:
        getattr(import_module(module), function)(dataset, temporary)
    return file
