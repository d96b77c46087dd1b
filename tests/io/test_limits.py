"""Files that declare more than there may be: refused before the memory is taken."""

from __future__ import annotations

import bz2
import gzip
import lzma
import resource
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hostile_files import dataset

import mipl
from mipl.errors import DataError, ParameterError

LARGE = 1 << 26
LIMIT = 1 << 24


def zeros(m: int = LARGE // 256) -> pa.Table:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(64 * m, dtype=np.float32)), 64)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(m + 1, dtype=np.int32)), rows)
    return pa.table({"instances": lists, "candidates": pa.array(["a|b"] * m)})


def write_parquet(path: Path) -> None:
    pq.write_table(zeros(), path)


def write_feather(path: Path) -> None:
    pa.feather.write_feather(zeros(), str(path), compression="zstd")


def write_npz(path: Path) -> None:
    np.savez_compressed(
        path,
        instances=np.zeros((LARGE // 256, 64), np.float32),
        offsets=np.arange(LARGE // 256 + 1),
        candidates=np.ones((LARGE // 256, 2), bool),
    )


def write_npz_header(path: Path) -> None:
    """A header of 2**60 numbers above eight bytes of them."""
    header = np.lib.format.magic(1, 0)
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1073741824, 1073741824), }".ljust(117) + "\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("instances.npy", header + len(text).to_bytes(2, "little") + text.encode() + bytes(8))


def write_text(path: Path) -> None:
    packers = {
        ".gz": gzip.compress,
        ".bz2": lambda data: bz2.compress(data, 1),
        ".xz": lambda data: lzma.compress(data, preset=0),
        ".zst": pa.Codec("zstd").compress,
    }
    packed = packers[path.suffix](b"bag_id,candidates,x\n" + b"1,a|b,0\n" * (3 * LIMIT // 16))
    path.write_bytes(packed if isinstance(packed, bytes) else packed.to_pybytes())


def write_xlsx(path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["bag_id", "candidates", "x"])
    book.active.cell(20_000, 16_384, 1.0)  # one cell far to the right and far below
    book.save(path)


def texts() -> pa.DictionaryArray:
    """One text of 64 KiB, a thousand times."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * 1024, pa.int32()), ["a" * (LARGE // 1024)])


def write_texts(path: Path) -> None:
    table = pa.table({"bag_id": range(1024), "candidates": texts(), "x": [0.0] * 1024})
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        pa.feather.write_feather(table, str(path), compression="zstd")


def write_plain_texts(path: Path) -> None:
    """The same without a word of dictionaries in the schema; in the file they are in one all the same."""
    table = pa.table({"bag_id": range(1024), "candidates": texts().cast(pa.string()), "x": [0.0] * 1024})
    pq.write_table(table, path, compression="zstd", store_schema=False)


def write_shared_texts(path: Path) -> None:
    """A workbook with one text of a megabyte that many cells share."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.save(path)
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    entry = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/>'
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace("</Types>", f"{entry}</Types>")
    shared = "".join(f"<si><t>{text}</t></si>" for text in ("bag_id", "candidates", "x", "a" * (1 << 20)))
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{namespace}">{shared}</sst>'
    rows = '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c></row>'
    rows += '<row><c><v>1</v></c><c t="s"><v>3</v></c><c><v>1</v></c></row>' * 64
    parts["xl/worksheets/sheet1.xml"] = f'<worksheet xmlns="{namespace}"><sheetData>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.parquet", write_parquet),
        ("x.feather", write_feather),
        ("x.npz", write_npz),
        ("h.npz", write_npz_header),
        *((f"x.csv{suffix}", write_text) for suffix in (".gz", ".bz2", ".xz", ".zst")),
        ("x.xlsx", write_xlsx),
        ("t.parquet", write_texts),
        ("t.feather", write_texts),
        ("p.parquet", write_plain_texts),
        ("s.xlsx", write_shared_texts),
    ],
)
def test_a_small_file_that_declares_much_is_refused_before_the_memory_is_taken(tmp_path: Path, name: str, write):
    path = tmp_path / name
    write(path)
    assert path.stat().st_size < LIMIT
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"pass max_bytes=N|declares"):
        mipl.load(path, max_bytes=LIMIT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3 * LIMIT / 1024


def test_a_file_within_the_limit_is_read(tmp_path: Path):
    for suffix in (".parquet", ".feather", ".npz", ".mat", ".csv", ".jsonl"):
        path = dataset().save(tmp_path / f"x{suffix}")
        assert mipl.load(path, max_bytes=20_000).equals(dataset())


def test_texts_that_could_take_more_than_the_limit_but_do_not_are_read(tmp_path: Path):
    names = ["a" * 5000, "b", "c"]
    ds = mipl.MIPLDataset([[[1.0]]] * 90, [[names[1 + i % 2], names[i % 2]] for i in range(90)], classes=names)
    path = ds.save(tmp_path / "x.parquet")
    assert 90 * 5000 > 400_000  # as the footer has it, each of 180 texts could be the long one
    assert mipl.load(path, max_bytes=400_000).equals(ds)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "1"])
def test_a_limit_is_a_positive_integer(tmp_path: Path, value: object):
    with pytest.raises(ParameterError, match="max_bytes="):
        mipl.load(tmp_path / "x.csv", max_bytes=value)
