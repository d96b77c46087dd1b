"""Damaged and odd data files: read right, or refused in one line that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hostile_files import Tally, dataset, flipped, forged, truncated

import mipl
from mipl.scanning.chunks import read_chunks

FORMATS = [".parquet", ".feather", ".npz", ".mat", ".csv", ".jsonl"]
SCANNED = [".parquet", ".feather"]

#: how many files are tried, more or less
sample = pytest.param(12, id="sample")
campaign = pytest.param(600, id="campaign", marks=pytest.mark.slow)


def same(found: mipl.MIPLDataset, expected: mipl.MIPLDataset) -> bool:
    return found.equals(expected) and (found.name, found.description) == (expected.name, expected.description)


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_a_flipped_bit_is_hardly_ever_other_data(tmp_path: Path, suffix: str, count: int):
    """What the checksums of a format do not cover, such as the header of a page, is no promise."""
    path, ds = tmp_path / f"x{suffix}", dataset()
    content = ds.save(path).read_bytes()
    expected = mipl.load(path)
    rng, tally = np.random.default_rng(1), Tally(f"flipped bits, {suffix}")
    for i in range(2 * count):
        damaged = tmp_path / str(i) / path.name  # clocks of file systems are too slow to tell changed files apart
        damaged.parent.mkdir()
        damaged.write_bytes(flipped(content, rng))
        tally.of(lambda damaged=damaged: same(mipl.load(damaged), expected), i)
        if suffix in SCANNED:
            tally.of(lambda damaged=damaged: same(mipl.scan(damaged).to_dataset(), expected), i)
    tally.check(most_wrong=max(1, count // 50))


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_is_cut_off_or_of_another_kind_is_refused(tmp_path: Path, suffix: str):
    path = tmp_path / f"x{suffix}"
    content = dataset().save(path).read_bytes()
    rng, tally = np.random.default_rng(2), Tally(f"cut off, {suffix}")
    damaged = [b"", b"\0" * 200, b"PK\x03\x04 no zip file", *(truncated(content, rng) for _ in range(12))]
    for i, each in enumerate(damaged):
        path.write_bytes(each)
        tally.of(lambda: mipl.load(path) and None, i)
        if suffix in SCANNED:
            tally.of(lambda: mipl.scan(path).to_dataset() and None, i)
        if suffix in (".csv", ".jsonl"):
            chunks = read_chunks([path], unlabelled=dataset().classes.tolist(), instances=3)
            tally.of(lambda chunks=chunks: [part.dataset for part in chunks] and None, i)
    tally.check()
    assert tally.counts["refused"] >= 3


@pytest.mark.parametrize("count", [sample, campaign])
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".jsonl"])
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
