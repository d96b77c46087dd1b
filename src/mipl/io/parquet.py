"""Parquet, the native format, and Feather: one row per bag, readable by pandas, polars, DuckDB, Spark and Dask.

Columns: ``bag_id`` (integer or string), ``instances`` (list of fixed-size lists of float), ``candidates`` (list of
strings), ``label`` (string or null), and where they are known ``weights`` (list of float, one for each candidate),
``instance_labels`` (list of integers: class index, q for negative, -1 for unknown) and ``group`` (integer). What the
columns cannot say (class order, background class, instance shape, feature names, name) is JSON under the key ``mipl``
of the schema's metadata; a file without it, written by another tool, is read too. Its
``candidates`` may be maps or structs from labels to weights, or strings ``"a:3|b:1"``; a null stands for a bag of which
nothing is known. Pages have checksums, which are compared when they are read.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from mipl.candidates import label_names
from mipl.dataset import MIPLDataset
from mipl.io.border import border
from mipl.io.options import Columns
from mipl.io.raw import RawBags
from mipl.io.table import from_table, metadata

__all__ = ["open_parquet", "read", "read_feather", "to_table", "write", "write_feather"]

_ROW_GROUP_BYTES = 64 << 20


def write(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`, in row groups of about 64 MiB so that a reader can stream them."""
    bag_bytes = max(1, dataset.bags.instances.nbytes // len(dataset))
    rows = max(1, _ROW_GROUP_BYTES // bag_bytes)
    with path.open("wb") as file:  # given a path, Arrow takes none that is not UTF-8
        pq.write_table(to_table(dataset), file, row_group_size=rows, write_page_checksum=True)


def to_table(dataset: MIPLDataset) -> pa.Table:
    """The data set as an Arrow table with one row per bag."""
    bags = dataset.bags
    offsets = bags.offsets.astype(np.int32)
    rows = pa.FixedSizeListArray.from_arrays(pa.array(bags.instances.reshape(-1)), bags.n_features)
    names = dataset.classes.astype(str)
    members = np.nonzero(dataset.candidates)[1]
    counts = np.concatenate([[0], np.cumsum(dataset.candidates.sum(axis=1))]).astype(np.int32)
    label = label_names(dataset.labels, names) or [None] * len(dataset)
    columns = {
        "bag_id": pa.array(dataset.bag_ids),
        "instances": pa.ListArray.from_arrays(offsets, rows),
        "candidates": pa.ListArray.from_arrays(counts, pa.array(names[members], pa.string())),
        "label": pa.array(label, pa.string()),
    }
    if dataset.candidate_weights is not None:
        given = dataset.candidate_weights[dataset.candidates]
        columns["weights"] = pa.ListArray.from_arrays(counts, pa.array(given))
    if dataset.instance_labels is not None:
        columns["instance_labels"] = pa.ListArray.from_arrays(offsets, pa.array(dataset.instance_labels))
    if dataset.groups is not None:
        columns["group"] = pa.array(dataset.groups)
    extra = {
        "format": 1,
        "classes": dataset.classes.tolist(),
        "background": dataset.background,
        "instance_shape": list(bags.instance_shape),
        "feature_names": bags.feature_names,
        "name": dataset.name,
        "description": dataset.description,
    }
    return pa.table(columns).replace_schema_metadata({"mipl": json.dumps(extra)})


def read(data: bytes | Path, where: str, columns: Columns) -> RawBags:
    """Read bags from a Parquet file, one row per bag or one row per instance.

    Parameters
    ----------
    data : bytes or Path
        The file or its content.
    where : str
        What errors call the file.
    columns : Columns
        What the user says about the columns.
    """
    with border(where, "a Parquet file"):
        table = _read_table(data)
        pa.default_memory_pool().release_unused()  # what decoding took is needed for the bags now
    return from_table(table, where, columns, metadata(table, where))


def _read_table(data: bytes | Path) -> pa.Table:
    """All rows. The open file is forgotten with this call: it holds the pages that it has read."""
    with open_parquet(data) as file:
        groups = [file.read_row_group(g) for g in range(file.num_row_groups)]
        return pa.concat_tables(groups) if groups else file.schema_arrow.empty_table()


def open_parquet(data: bytes | str | Path, buffer_size: int = 0) -> pq.ParquetFile:
    """Open a Parquet file, in which a page whose checksum does not match is an error when it is read.

    Parameters
    ----------
    data : bytes, str or Path
        The file or its content.
    buffer_size : int, default=0
        Bytes that are read at once; 0 for whole columns of a row group.
    """
    source = pa.BufferReader(data) if isinstance(data, bytes) else data
    return pq.ParquetFile(source, buffer_size=buffer_size, page_checksum_verification=True)


def write_feather(dataset: MIPLDataset, path: Path) -> None:
    """Write `dataset` to `path`."""
    with path.open("wb") as file:
        pyarrow.feather.write_feather(to_table(dataset), file)


def read_feather(data: bytes, where: str, columns: Columns) -> RawBags:
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
