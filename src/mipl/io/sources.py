"""What a user names as data: a file, several, a pattern, a folder, standard input, or a table in memory."""

from __future__ import annotations

import glob
import io
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mipl.arrays import as_pandas, is_hugging_face
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import COMPRESSED, border, decompressed, file_format, no_such_file
from mipl.io.images import IMAGE_SUFFIXES, SIDE_TABLES, is_image_folder
from mipl.io.options import Columns
from mipl.io.raw import Loaded, RawBags, join
from mipl.io.side_table import attach, read_side_table
from mipl.io.table import from_table, metadata
from mipl.visible_text import is_text
from mipl.votes import SET_WEIGHT

__all__ = ["READERS", "expand", "files_read", "is_data", "read_files", "read_frame", "read_joined", "read_raw"]

#: suffix -> module and function ``read(data, where, columns) -> RawBags``
TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "mipl.io.text:read"),
    **dict.fromkeys((".parquet", ".pq"), "mipl.io.parquet:read"),
    **dict.fromkeys((".feather", ".arrow"), "mipl.io.parquet:read_feather"),
    **dict.fromkeys((".jsonl", ".ndjson"), "mipl.io.jsonl:read"),
    ".xlsx": "mipl.io.excel:read",
}
#: suffix -> module and function ``read(path) -> MIPLDataset``
ARRAYS = {".npz": "mipl.io.arrays:read_npz", ".mat": "mipl.io.arrays:read_mat"}
READERS = {**TABLES, **ARRAYS}
#: Formats that may have a column of images.
_WITH_IMAGES = (".parquet", ".pq", ".feather", ".arrow")


def expand(sources: Sequence[str | Path]) -> list[Path]:
    """The files that names, patterns and folders stand for; a folder of images stands for itself."""
    files: list[Path] = []
    for source in sources:
        path = Path(source)
        if str(source) != "-" and not path.exists() and any(c in str(source) for c in "*?["):
            found = sorted(Path(name) for name in glob.glob(str(source), recursive=True))
            if not found:
                raise DataError(f"no file matches {str(source)!r}")
            files += expand(found)
        elif path.is_dir() and not is_image_folder(path):
            found = sorted(f for f in path.rglob("*") if f.is_file() and file_format(f)[0] in READERS)
            # Spark and others keep marks such as _SUCCESS and hidden checksums beside the data.
            found = [f for f in found if not f.name.startswith((".", "_"))]
            if not found:
                known = f"{', '.join(READERS)}, or images ({', '.join(IMAGE_SUFFIXES)})"
                raise DataError(f"the folder {path} has no data files: {known}")
            files += found
        else:
            files.append(path)
    return files


def files_read(sources: Sequence[str | Path]) -> Iterator[Path]:
    """The files that are read for what a user named; of a folder of images, those and its tables."""
    for path in expand(sources):
        if path.is_dir():
            yield from sorted(f for f in path.rglob("*") if f.is_file() and is_data(f.relative_to(path), images=True))
        else:
            yield path


def is_data(file: Path, images: bool) -> bool:
    """Whether a file, by its path below a folder of data or of images, is read with the folder."""
    if file.suffix.lower() in IMAGE_SUFFIXES:
        return len(file.parts) <= 2  # one image makes a folder one of images
    if images:
        return len(file.parts) == 1 and file.suffix.lower() in SIDE_TABLES
    return file_format(file)[0] in READERS and not file.name.startswith((".", "_"))


def read_files(
    sources: Sequence[str | Path],
    columns: Columns | None = None,
    unlabelled: Sequence[Any] | None = None,
) -> Loaded:
    """Read one data set from all files that the sources stand for.

    Parameters
    ----------
    sources : sequence of str or Path
        Files, patterns, folders, or ``"-"`` for standard input.
    columns : Columns, default=None
        What the user says about the columns.
    unlabelled : sequence of labels, default=None
        The classes that a bag without candidates may have; None refuses such bags.
    """
    columns = columns or Columns()
    files = expand(sources)
    if len(files) == 1 and columns.table is None:
        found = read_raw(files[0], columns)
        return Loaded(found) if isinstance(found, MIPLDataset) else found.load(columns.missing, unlabelled, warn=True)
    return read_joined(files, columns).load(columns.missing, unlabelled, warn=True)


def read_joined(files: Sequence[Path], columns: Columns) -> RawBags:
    """Read files as they are, one after the other; what the features are is decided by the first file of a format."""
    if not files:
        raise DataError("no files to read")
    side = None
    if columns.table is not None and not any(file.is_dir() for file in files):
        side = read_side_table(Path(columns.table), columns)
        # What is named by these lies in the side table.
        label = None if side.labels is not None else columns.label
        columns = replace(columns, table=None, candidates=None, label=label)
    taken: dict[str, Columns] = {}
    parts: list[RawBags] = []
    for file in files:
        kind = file_format(file)[0]
        found = read_raw(file, taken.get(kind, columns))
        raw = RawBags.from_dataset(found, str(file)) if isinstance(found, MIPLDataset) else found
        if columns.features is None and raw.roles.features:
            taken.setdefault(kind, replace(columns, features=list(raw.roles.features)))
        parts.append(raw)
    raw = parts[0] if len(parts) == 1 else join([str(file) for file in files], parts)
    if side is not None:
        attach(raw, side)
    return raw


def read_raw(path: Path, columns: Columns) -> RawBags | MIPLDataset:
    """Read one file or folder of images as it is."""
    with border(str(path), "a file of data"):
        return _read_raw(path, columns)


def _read_raw(path: Path, columns: Columns) -> RawBags | MIPLDataset:
    if path.is_dir():
        found: RawBags | MIPLDataset = import_module("mipl.io.images").read(path, columns)
        return found
    may_have = () if file_format(path)[0] in _WITH_IMAGES else ("patch", "size")
    lost = [name for name in ("table", *may_have) if getattr(columns, name) is not None]
    if given := [name for name in lost if name not in columns.remembered]:
        raise DataError(f"{', '.join(given)}: these options are for images; {path} has none")
    if lost:
        columns = replace(columns, table=None, patch=None, size=None)
    if str(path) == "-":
        return _described(_read_bytes(sys.stdin.buffer.read(), "standard input", columns), path)
    suffix, compression = file_format(path)
    if suffix not in READERS:
        if not path.exists():
            raise no_such_file(path, "file or folder")
        known = f"{', '.join(READERS)} (text also compressed: {', '.join(COMPRESSED)})"
        raise DataError(f"cannot tell the format of {path}; its suffix must be one of {known}")
    if not path.is_file():
        raise no_such_file(path)
    if suffix in ARRAYS:
        if columns.said():
            raise DataError(f"{path} has arrays and no columns; options for columns do not apply to {suffix} files")
        dataset: RawBags | MIPLDataset = _reader(ARRAYS[suffix])(path)
        return dataset
    read = _reader(TABLES[suffix])
    if suffix in (".parquet", ".pq") and not compression and is_text(str(path)):  # Arrow opens no other
        return _described(read(path, str(path), columns), path)
    data = _decompressed(path.read_bytes(), compression, str(path))
    return _described(read(data, str(path), columns), path)


def _reader(name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(module), function)


def _described(raw: RawBags, path: Path) -> RawBags:
    """Name the data set after its file, and say what its columns were taken for."""
    pa.default_memory_pool().release_unused()  # the table is no longer needed, and what follows needs memory
    if raw.name is None:
        raw.name = "" if str(path) == "-" else Path(path.name.removesuffix(file_format(path)[1])).stem
    remark = raw.roles.remark()
    if not raw.roles.usual:
        raw.remarks.insert(0, f"{raw.where}: {remark}")
    return raw


def _read_bytes(data: bytes, where: str, columns: Columns) -> RawBags:
    """Read from standard input: the format is told by the first bytes."""
    if not data:
        raise DataError(f"{where} is empty")
    for compression, mark in COMPRESSED.items():
        if data.startswith(mark):
            data = _decompressed(data, compression, where)
    marks = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\xff\xff\xff\xff": ".feather", b"PK\x03\x04": ".xlsx"}
    suffix = next((s for mark, s in marks.items() if data.startswith(mark)), "")
    suffix = suffix or (".jsonl" if data.lstrip()[:1] == b"{" else ".csv")
    raw: RawBags = _reader(TABLES[suffix])(data, where, columns)
    return raw


def _decompressed(data: bytes, compression: str, where: str) -> bytes:
    if not compression:
        return data
    with border(where, f"compressed as {compression}"), decompressed(io.BytesIO(data), compression) as stream:
        return stream.read()


_WHERE = "the table"


def read_frame(frame: Any, columns: Columns) -> RawBags:
    """Read bags from a table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table, or Dataset of Hugging Face's `datasets`
        One row per instance or one row per bag. The index of a pandas frame is a column where it has a name.
    columns : Columns
        What the user says about the columns.
    """
    table = _arrow(frame)
    raw = from_table(table, _WHERE, columns, metadata(table, _WHERE), decimal=columns.decimal or ".")
    raw.name = ""
    if not raw.roles.usual:
        raw.remarks.insert(0, f"{_WHERE}: {raw.roles.remark()}")
    return raw


def _arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if is_hugging_face(frame):
        if not hasattr(frame, "features") or not hasattr(frame, "num_rows"):
            raise DataError(f"a {type(frame).__name__} is no table; choose one part of it, such as dataset['train']")
        # Its names of classes are in the metadata of the schema.
        return frame.with_format("arrow")[:].replace_schema_metadata(frame.features.arrow_schema.metadata)
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    frame = as_pandas(frame)
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=named) if named else frame
    columns = [_frame_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return pa.table(columns, names=[str(name) for name in frame.columns])


def _frame_column(series: Any) -> pa.Array:
    try:
        found = pa.array(series, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return _objects(series.to_list())


def _objects(cells: list[Any]) -> pa.Array:
    """Cells that Arrow does not know: sets of labels, labels with weights, images, or a mixture of kinds."""
    if any(isinstance(cell, Mapping) for cell in cells):
        return _maps(cells)
    plain = [_plain(cell) for cell in cells]
    try:
        return pa.array(plain, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a mixture; the reader of the column says what it cannot use
        return pa.array([None if cell is None or cell != cell else str(cell) for cell in plain])


def _maps(cells: list[Any]) -> pa.Array:
    """Labels with weights; a plain set among them gives each of its labels the same weight."""
    found: list[Any] = []
    for cell in cells:
        if isinstance(cell, Mapping):
            found.append([(key, None if weight is None else float(weight)) for key, weight in cell.items()])
        elif isinstance(cell, Set | list | tuple | np.ndarray):
            found.append([(label, SET_WEIGHT) for label in _plain(cell)])
        else:
            found.append(None if cell is None or cell != cell else [(cell, SET_WEIGHT)])
    keys = {type(key) for cell in found if cell for key, _ in cell}
    kind = pa.int64() if keys and keys <= {int, np.int64} else pa.string()
    named = [None if cell is None else [(k if kind == pa.int64() else str(k), w) for k, w in cell] for cell in found]
    return pa.array(named, pa.map_(kind, pa.float64()))


def _plain(cell: Any) -> Any:
    if isinstance(cell, Set):
        return sorted(cell, key=str)
    return cell.tolist() if isinstance(cell, np.ndarray) else cell
