"""The reader of MATLAB files against SciPy's, on what SciPy writes; and declared sizes that are not there."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import loadmat, savemat
from scipy.sparse import random_array

from mipl.errors import DataError
from mipl.io.limits import Allowance
from mipl.io.matlab import read_variables

numbers = hnp.arrays(
    st.sampled_from(["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]),
    hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4),
)
characters = st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\0")
texts = st.text(characters, min_size=1, max_size=5)


def read(content: bytes, max_bytes: int = 1 << 20) -> dict:
    return read_variables(content, "x.mat", Allowance("x.mat", max_bytes))


def written(compressed: bool = True, **variables) -> bytes:
    file = io.BytesIO()
    savemat(file, variables, do_compression=compressed)
    return file.getvalue()


@given(x=numbers, cells=st.lists(numbers, min_size=1, max_size=4), text=texts, compressed=st.booleans())
def test_everything_is_as_scipy_reads_it(x, cells, text, compressed):
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = cells
    content = written(compressed, x=x, data=column, text=text)
    ours, theirs = read(content), loadmat(io.BytesIO(content))
    assert set(ours) == {"x", "data", "text"}
    np.testing.assert_array_equal(ours["x"], theirs["x"])
    assert ours["data"].shape == theirs["data"].shape
    for one, other in zip(ours["data"].flat, theirs["data"].flat, strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours["text"] == text


def test_sparse_matrices_are_as_scipy_reads_them():
    matrix = random_array((7, 5), density=0.3, rng=np.random.default_rng(0)).tocsc()
    np.testing.assert_array_equal(read(written(x=matrix))["x"], matrix.toarray())


def test_structures_are_stepped_over():
    found = read(written(a={"field": 1.0}, x=[[1.0, 2.0]], z=[[1j]]))
    assert found["a"] is None
    assert found["z"] is None
    assert found["x"].tolist() == [[1, 2]]


def test_published_splits_are_as_scipy_reads_them(raw_data: Path):
    files = sorted((raw_data / "splits").rglob("*.mat"))
    assert files
    for file in files:
        ours, theirs = read(file.read_bytes()), loadmat(file)
        for name in ("trainIndex", "testIndex"):
            np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("compressed", [True, False])
def test_a_flipped_bit_is_found_where_there_is_a_checksum(compressed: bool):
    content = written(compressed, x=np.arange(100.0))
    changed = bytearray(content)
    changed[-60] ^= 1
    if compressed:
        with pytest.raises(DataError, match="incorrect data check"):
            read(bytes(changed))
    else:
        assert (read(bytes(changed))["x"] != np.arange(100.0)).sum() == 1


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(kind: int, shape: tuple[int, ...], *parts: bytes) -> bytes:
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, head + element(1, b"x") + b"".join(parts))


def file_of(*elements: bytes) -> bytes:
    return b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM" + b"".join(elements)


def test_what_a_file_declares_is_compared_with_what_it_has():
    eight = element(9, struct.pack("<d", 1.0))
    assert read(file_of(matrix(6, (1, 1), eight)))["x"].tolist() == [[1.0]]
    for broken in (
        matrix(6, (2**30, 2**30), eight),
        matrix(6, (-1, -1), eight),
        matrix(6, (1,), eight),
        matrix(1, (2**31 - 1, 2**31 - 1)),
        struct.pack("<II", 14, 2**31),
        element(15, zlib.compress(matrix(6, (1, 1), eight))[:-3]),
        matrix(5, (2, 2), element(5, struct.pack("<i", 9)), element(5, struct.pack("<3i", 0, 1, 1)), eight),
        matrix(5, (2, 2), element(5, struct.pack("<i", 0)), element(5, struct.pack("<3i", 0, 9, 1)), eight),
    ):
        with pytest.raises(DataError, match="damaged or not a MATLAB file"):
            read(file_of(broken))


def test_bombs_are_refused_before_they_are_made():
    starts = element(5, bytes(4 * 10_001))
    sparse = matrix(5, (10_000, 10_000), element(5, b""), starts, element(9, b""))
    with pytest.raises(DataError, match=r"would take at least 762\.\d MiB of memory"):
        read(file_of(sparse))
    packed = element(15, zlib.compress(bytes(1 << 25)))
    with pytest.raises(DataError, match=r"more than the 1\.0 MiB that are allowed"):
        read(file_of(packed))
