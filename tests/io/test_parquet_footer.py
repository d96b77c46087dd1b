"""The footer of Parquet files: read as pyarrow reads it, refused where pyarrow would end the program."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hostile_files import dataset

import mipl
from mipl.errors import DataError
from mipl.io.parquet_footer import column_chunks


def chunks_by_pyarrow(path: Path) -> list[list[tuple[str, str, int, int]]]:
    footer = pq.ParquetFile(path).metadata
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    found = [[group.column(j) for j in range(group.num_columns)] for group in groups]
    return [[(c.path_in_schema, c.physical_type, c.num_values, c.total_uncompressed_size) for c in g] for g in found]


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_columns_are_those_that_pyarrow_tells(tmp_path: Path, compression: str):
    n = 70
    table = pa.table(
        {
            "small": pa.array(range(n), pa.int8()),
            "time": pa.array(range(n), pa.timestamp("ns")),
            "text": [None if i % 3 else "x" * i for i in range(n)],
            "truth": [True] * n,
            "fixed": pa.array([b"abc"] * n, pa.binary(3)),
            "records": [[{"a": 1.5, "b": "y"}] * (i % 4) for i in range(n)],
            "map": pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int16())),
            "empty": pa.nulls(n),
        }
    )
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=32, compression=compression, data_page_version="2.0")
    with path.open("rb") as file:
        found = column_chunks(file, pq.ParquetFile(path).schema)
    assert [list(map(tuple, group)) for group in found] == chunks_by_pyarrow(path)
    assert len(found) == 3


def with_footer(content: bytes, footer: bytes) -> bytes:
    length = int.from_bytes(content[-8:-4], "little")
    return content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


@pytest.mark.parametrize("footer", [b"", b"\x49\x1c\0\0", b"\x19\xfc" + b"\xff" * 30, b"\x1c" * 5000])
def test_bytes_that_are_no_footer_are_refused(footer: bytes):
    schema = pq.ParquetFile(io.BytesIO(sample())).schema
    with pytest.raises((ValueError, RecursionError)):
        column_chunks(io.BytesIO(with_footer(sample(), footer)), schema)


def sample() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"bag_id": [1, 2], "candidates": [["a"], ["b"]], "instances": [[[1.0]], [[2.0]]]}), sink)
    return sink.getvalue()


def test_no_flipped_bit_of_a_footer_ends_the_program(tmp_path: Path):
    """Also where nobody wrote checksums, and filters look at the statistics."""
    path = dataset(plain=True).save(tmp_path / "x.parquet")
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    rng = np.random.default_rng(0)
    for place in rng.choice(length, 150, replace=False):
        changed = bytearray(content[-8 - length : -8])
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(with_footer(content, bytes(changed)))
        for read in (
            lambda: mipl.load(path, verify=False),
            lambda: mipl.scan(path, verify=False).filter(pc.field("label") == "bee").to_dataset(),
        ):
            try:
                read()
            except DataError:
                continue
