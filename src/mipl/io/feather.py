"""Feather and Arrow files: the columns of Parquet, in Arrow's own format, as a file or a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.feather

from mipl.dataset import MIPLDataset
from mipl.io.border import border
from mipl.io.columns import Columns
from mipl.io.parquet import to_table
from mipl.io.raw import RawBags
from mipl.io.tabular import from_table, metadata

__all__ = ["read", "write"]


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`."""
    with path.open("wb") as file:
        pyarrow.feather.write_feather(to_table(dataset), file)


def read(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read bags from the content of a file, one row per bag or one row per instance.

    Parameters
    ----------
    data : bytes
        The content.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    with border(where, "a Feather file"):
        is_file = data.startswith(b"ARROW1")
        # The stream format is the one in which Hugging Face's `datasets` saves to disk.
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(pa.BufferReader(data)).read_all()
        table.validate(full=True)  # offsets of lists that point outside would read other memory
    return from_table(table, where, columns, metadata(table, where))
