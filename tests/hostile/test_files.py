"""Damaged and forged data files: read right, or refused in one line; never another library's error or other data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from hostile_files import DAMAGE, Tally, dataset, flipped, forged

import mipl
from mipl.io.chunks import read_chunks
from mipl.io.columns import Columns

FORMATS = [".parquet", ".feather", ".npz", ".mat", ".csv", ".jsonl"]
SCANNED = [".parquet", ".feather"]

#: how many files are tried, more or less
sample = pytest.param(12, id="sample")
campaign = pytest.param(1000, id="campaign", marks=pytest.mark.slow)


def same(found: mipl.MIPLDataset, expected: mipl.MIPLDataset) -> bool:
    return found.equals(expected) and (found.name, found.description) == (expected.name, expected.description)


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_flipped_bit_is_never_other_data(tmp_path: Path, suffix: str, count: int):
    path, ds = tmp_path / f"x{suffix}", dataset()
    content = ds.save(path).read_bytes()
    expected = mipl.load(path)
    rng, tally = np.random.default_rng(1), Tally(f"flipped bits, {suffix}")
    for i in range(3 * count):
        path.write_bytes(flipped(content, rng))
        tally.of(lambda: same(mipl.load(path), expected), i)
    tally.check()


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", SCANNED)
def test_a_flipped_bit_is_no_other_data_to_a_scan(tmp_path: Path, suffix: str, count: int):
    path, ds = tmp_path / f"x{suffix}", dataset()
    content = ds.save(path).read_bytes()
    expected = mipl.scan(path).to_dataset()
    rng, tally = np.random.default_rng(14), Tally(f"flipped bits in scans, {suffix}")
    for i in range(3 * count):
        damaged = (
            tmp_path / str(i) / path.name
        )  # a name of its own: clocks of file systems are too slow to tell them apart
        damaged.parent.mkdir()
        damaged.write_bytes(flipped(content, rng))
        tally.of(lambda damaged=damaged: same(mipl.scan(damaged).to_dataset(), expected), i)
    tally.check()


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_bytes_are_refused_in_one_line(tmp_path: Path, suffix: str, count: int):
    rng, tally = np.random.default_rng(2), Tally(f"damaged bytes, {suffix}")
    for plain in (False, True):
        path = tmp_path / f"{plain}{suffix}"
        content = dataset(plain).save(path).read_bytes()
        for i in range(count):
            path.write_bytes(DAMAGE[i % len(DAMAGE)](content, rng))
            tally.of(lambda path=path: mipl.load(path) and None, i)
            tally.of(lambda path=path: mipl.load(path, verify=False) and None, i)
    tally.check()


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", FORMATS)
def test_metadata_and_columns_of_odd_types_are_refused_in_one_line(tmp_path: Path, suffix: str, count: int):
    path, ds = tmp_path / f"x{suffix}", dataset()
    content = ds.save(path).read_bytes()
    rng, tally = np.random.default_rng(3), Tally(f"forged metadata, {suffix}")
    for i in range(2 * count):
        path.write_bytes(content)
        forged(path, rng)
        tally.of(lambda: mipl.load(path) and None, i)
        if suffix in SCANNED:
            tally.of(lambda: mipl.scan(path).to_dataset() and None, i)
    tally.check()


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", SCANNED)
def test_scans_of_damaged_files_are_refused_in_one_line(tmp_path: Path, suffix: str, count: int):
    path = tmp_path / f"x{suffix}"
    content = dataset().save(path).read_bytes()
    rng, tally = np.random.default_rng(4), Tally(f"scans, {suffix}")
    for i in range(2 * count):
        path.write_bytes(DAMAGE[i % len(DAMAGE)](content, rng))
        tally.of(lambda: mipl.scan(path).to_dataset() and None, i)
        tally.of(lambda: mipl.scan(path).supervision() and None, i)
        tally.of(lambda: mipl.scan(path).sample(3) and None, i)
        tally.of(lambda: mipl.scan(path, verify=False).filter(pc.field("label") == "ant").to_dataset() and None, i)
    tally.check()


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_chunks_of_damaged_files_are_refused_in_one_line(tmp_path: Path, suffix: str, count: int):
    path = tmp_path / f"x{suffix}"
    contents = [dataset(plain).save(path).read_bytes() for plain in (False, True)]
    rng, tally = np.random.default_rng(13), Tally(f"chunks, {suffix}")
    classes = dataset().classes.tolist()
    for i in range(count):
        path.write_bytes(DAMAGE[i % len(DAMAGE)](contents[i % 2], rng))
        for verify in (True, False):
            chunks = read_chunks([path], Columns(verify=verify), classes, 3)
            tally.of(lambda chunks=chunks: [part.dataset for part in chunks] and None, i)
    tally.check()
