"""Checksums inside files: damage is told, foreign files are read, and an edited file can be accepted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hostile_files import dataset

import mipl
from mipl.errors import DataError


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_other_programs_read_a_sealed_file_and_what_they_write_is_not_sealed(tmp_path: Path, suffix: str):
    path = dataset().save(tmp_path / f"x{suffix}")
    table = pq.read_table(path) if suffix == ".parquet" else pa.feather.read_table(path)
    assert table.num_rows == 6
    assert b"mipl seal" in path.read_bytes()
    fewer = table.slice(0, 4)  # it keeps the metadata of mipl
    if suffix == ".parquet":
        pq.write_table(fewer, path)
    else:
        pa.feather.write_feather(fewer, str(path))
    assert b"mipl seal" not in path.read_bytes()
    assert mipl.load(path).equals(dataset()[:4])


def test_every_page_of_a_parquet_file_has_a_checksum_that_is_compared(tmp_path: Path):
    path = dataset().save(tmp_path / "x.parquet")
    content = bytearray(path.read_bytes())
    values = dataset().bags.instances.tobytes()[:16]
    place = content.find(values)
    assert place > 0
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(OSError, match="CRC"):  # pyarrow alone
        pq.ParquetFile(path, page_checksum_verification=True).read()
    with pytest.raises(DataError, match=r"CRC|could not verify page integrity"):
        mipl.scan(path).to_dataset()
    with pytest.raises(DataError, match="its checksum does not match"):
        mipl.load(path)
    changed = mipl.load(path, verify=False).bags.instances != dataset().bags.instances
    assert changed.sum() == 1


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_edited_text_file_is_refused_with_a_way_to_accept_it(tmp_path: Path, suffix: str):
    path = dataset().save(tmp_path / f"x{suffix}")
    text = path.read_text(encoding="utf-8").replace("b=6", "b=7")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r'if you edited it, take "crc32" out of its first line, or pass verify=False'):
        mipl.load(path)
    assert mipl.load(path, verify=False).bag_ids[-1] == "b=7"
    path.write_text(re.sub(r', "crc32": "[0-9a-f]{8}"', "", text), encoding="utf-8")
    assert mipl.load(path).bag_ids[-1] == "b=7"


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_damage_to_the_mark_of_a_seal_does_not_make_the_file_a_foreigners(tmp_path: Path, suffix: str):
    path = dataset().save(tmp_path / f"x{suffix}")
    content = path.read_bytes()
    assert content.count(b"mipl seal of CRC") == 1
    path.write_bytes(content.replace(b"mipl seal of CRC", bytes(16)).replace(b"hostile", b"Hostile"))
    with pytest.raises(DataError, match="its checksum does not match"):
        mipl.load(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_metadata_line_is_part_of_the_checksum(tmp_path: Path, suffix: str):
    path = dataset().save(tmp_path / f"x{suffix}")
    path.write_text(path.read_text(encoding="utf-8").replace("zzz", "zzy", 1), encoding="utf-8")
    with pytest.raises(DataError, match="its checksum does not match"):
        mipl.load(path)


def test_a_flipped_bit_in_the_name_of_the_checksum_does_not_make_the_text_another(tmp_path: Path):
    path = dataset().save(tmp_path / "x.csv")
    path.write_bytes(path.read_bytes().replace(b"crc32", b"c\xf2c32", 1))
    with pytest.raises(DataError, match="it is not UTF-8 any more"):
        mipl.load(path)
    assert len(mipl.load(path, verify=False)) == len(dataset())


def test_a_first_line_that_a_spreadsheet_rewrote_is_told(tmp_path: Path):
    path = dataset().save(tmp_path / "x.csv")
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    path.write_text('"' + first.replace('"', '""') + '"\n' + rest, encoding="utf-8")
    with pytest.raises(DataError, match="a spreadsheet has rewritten the first line"):
        mipl.load(path)


def test_the_checksums_of_a_zip_file_are_compared(tmp_path: Path):
    path = dataset().save(tmp_path / "x.npz")
    content = bytearray(path.read_bytes())
    content[content.find(dataset().bags.instances.tobytes())] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="CRC"):
        mipl.load(path)


def test_large_text_read_in_chunks_is_compared_too(tmp_path: Path):
    from mipl.io.chunks import read_chunks

    for suffix in (".csv", ".jsonl"):
        path = dataset().save(tmp_path / f"x{suffix}")
        bags = [chunk.dataset.bags.instances for chunk in read_chunks([path], instances=4)]
        assert np.array_equal(np.concatenate(bags), dataset().bags.instances)
        path.write_bytes(path.read_bytes().replace(b"b=6", b"b=7"))
        with pytest.raises(DataError, match="its checksum does not match"):
            list(read_chunks([path], instances=4))
