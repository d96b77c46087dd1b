"""Feather and Arrow files: the columns of Parquet, in Arrow's own format, as a file or a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.feather

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.columns import Columns
from mipl.io.lists import first_line
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
    try:
        if data.startswith(b"ARROW1"):
            table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        else:  # the stream format, in which Hugging Face's `datasets` saves to disk
            table = pa.ipc.open_stream(pa.BufferReader(data)).read_all()
        table.validate()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{where} is damaged or not a Feather file ({first_line(error)})") from error
    return from_table(table, where, columns, metadata(table, where))
