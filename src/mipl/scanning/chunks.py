"""Bags of large files chunk by chunk, in bounded memory: Parquet, Feather, text and JSON lines.

A chunk holds whole bags. In a table with one row per instance the rows of a bag must then lie together, as nobody can
know that no more of them follow; a bag that comes again is an error. Other formats come in one chunk per file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.border import border, file_format, open_decompressed
from mipl.io.cells import depth
from mipl.io.columns import find_roles
from mipl.io.jsonl import open_lines
from mipl.io.options import Columns
from mipl.io.pixels import has_images
from mipl.io.raw import Loaded
from mipl.io.sources import expand, read_raw
from mipl.io.table import from_table, metadata
from mipl.io.text import open_text
from mipl.scanning.files import SUFFIXES as SCANNED
from mipl.scanning.files import ScanFile, list_files
from mipl.scanning.pieces import Selection, cut, read_pieces
from mipl.scanning.scan import build_index
from mipl.scanning.source import Recipe, Source

__all__ = ["is_large", "read_chunks"]

#: Bytes of a chunk: of its features, or of the text that it is read from.
_CHUNK_BYTES = 64 << 20
#: A number takes about so many times more memory as text and Python objects than as a feature.
_JSON_FACTOR = 8
#: Tables of numbers are about so many times larger as text than compressed.
_PACKED = 4
_TEXT = (".csv", ".tsv", ".txt")
_LINES = (".jsonl", ".ndjson")
_SAMPLE_BYTES = 1 << 18


def is_large(sources: Sequence[str | Path]) -> bool:
    """Whether files together are better read chunk by chunk: more than 64 MiB, or 16 MiB where they are compressed."""
    size = 0
    for path in expand(sources):
        suffix, compression = file_format(path)
        if path.is_file() and (suffix in (*_TEXT, *_LINES) or (suffix in SCANNED and not compression)):
            size += path.stat().st_size * (_PACKED if compression else 1)
    return size > _CHUNK_BYTES


def read_chunks(
    sources: Sequence[str | Path],
    columns: Columns | None = None,
    unlabelled: Sequence[Any] | None = None,
    instances: int | None = None,
) -> Iterator[Loaded]:
    """Read data sets of bounded size.

    Parameters
    ----------
    sources : sequence of str or Path
        As in `mipl.io.sources.read_files`.
    columns : Columns, default=None
        What the user says about the columns; ``missing="mean"`` is refused, as a mean needs all rows.
    unlabelled : sequence of labels, default=None
        The classes that a bag without candidates may have; None refuses such bags.
    instances : int, default=None
        How many instances (in text with one row per bag: bags) a chunk has at most; None for about 64 MiB.
    """
    columns = columns or Columns()
    if columns.missing == "mean":
        raise DataError("missing='mean' needs all rows at once, so the file cannot be read in chunks; use 'drop'")
    owner: dict[Any, str] = {}
    for scanned, files in groupby(expand(sources), _is_scanned):
        if scanned:
            yield from _scanned(list(files), columns, unlabelled, instances)
            continue
        for file in files:
            for part in _guarded(file, _chunks(file, columns, unlabelled, instances)):
                for each in part.dataset.bag_ids.tolist():
                    if each in owner:
                        raise DataError(
                            f"the bag {each!r} of {owner[each]} comes again in {file}; to read large files in chunks, "
                            "the rows of a bag must lie together: sort them by the bag"
                        )
                    owner[each] = str(file)
                yield part


def _guarded(file: Path, parts: Iterator[Loaded]) -> Iterator[Loaded]:
    """The same parts; an error of another library in the middle of a file is one of mipl's."""
    with border(str(file), "a file of data"):
        yield from parts


def _is_scanned(file: Path) -> bool:
    suffix, compression = file_format(file)
    if suffix not in SCANNED or compression or not file.is_file():
        return False
    with ScanFile.find(file, ()).open() as rows:
        return not has_images(rows.schema)  # images are many times larger than in the file, and may be cut


def _scanned(
    files: list[Path], columns: Columns, unlabelled: Sequence[Any] | None, instances: int | None
) -> Iterator[Loaded]:
    """Chunks of files with columns, as one scan."""
    source = Source(list_files(files), columns, None)
    layout = source.layout
    build_index(source, Selection())  # a bag that comes again is found before anything is computed
    recipe = Recipe(layout, unlabelled=None if unlabelled is None else list(unlabelled))
    most = instances or max(1, _CHUNK_BYTES // (4 * layout.n_features))
    pieces = read_pieces(source.parts(), layout, Selection(), at_once=most // 2 + 1)
    for i, chunk in enumerate(cut(pieces, most)):
        loaded = recipe.load(chunk)
        remarks = [layout.remark] if i == 0 and layout.remark is not None else []
        yield loaded._replace(remarks=(*remarks, *loaded.remarks))


def _chunks(file: Path, columns: Columns, unlabelled: Sequence[Any] | None, instances: int | None) -> Iterator[Loaded]:
    suffix = file_format(file)[0]
    if suffix in _TEXT and file.is_file():
        text = open_text(file, columns, instances or _lines_of(file))
        parts = _loaded(file, text.tables, columns, unlabelled, text.extra, text.top, text=True, decimal=text.decimal)
        for i, part in enumerate(parts):
            yield part._replace(remarks=(*part.remarks, *text.remarks)) if i == 0 else part
    elif suffix in _LINES and file.is_file():
        tables, extra = open_lines(file, instances or _lines_of(file), _CHUNK_BYTES // _JSON_FACTOR)
        yield from _loaded(file, tables, columns, unlabelled, extra)
    else:
        found = read_raw(file, columns)
        yield Loaded(found) if isinstance(found, MIPLDataset) else found.load(columns.missing, unlabelled)


def _lines_of(file: Path) -> int:
    """How many lines of a file make a chunk, by the length of its first lines."""
    with open_decompressed(file) as opened:
        start = opened.read(_SAMPLE_BYTES)
    return max(1, _CHUNK_BYTES * max(1, start.count(b"\n")) // max(1, len(start)))


def _loaded(
    file: Path,
    tables: Iterator[pa.Table],
    columns: Columns,
    unlabelled: Sequence[Any] | None,
    extra: dict[str, Any],
    top: int | None = None,
    **options: Any,
) -> Iterator[Loaded]:
    """Whole bags out of tables; the last bag of one waits for the next one."""
    where, rest, done = str(file), None, 0
    first = True
    for part in tables:
        table = part if rest is None else pa.concat_tables([rest, part], promote_options="permissive")
        keep = _whole_bags(table, where, columns, bool(extra or metadata(table, where)))
        rest = table.slice(keep)
        if keep == 0:
            continue
        loaded, columns = _load(table.slice(0, keep), where, columns, unlabelled, extra, top, done, first, options)
        yield loaded
        done += keep
        first = False
    if rest is None:
        raise DataError(f"{where} has no rows: the data set is empty")
    if rest.num_rows:
        yield _load(rest, where, columns, unlabelled, extra, top, done, first, options)[0]


def _load(
    table: pa.Table,
    where: str,
    columns: Columns,
    unlabelled: Sequence[Any] | None,
    extra: dict[str, Any],
    top: int | None,
    done: int,
    first: bool,
    options: dict[str, Any],
) -> tuple[Loaded, Columns]:
    """One chunk as a data set; the first one decides what the features are."""
    lines = None if top is None else np.arange(table.num_rows) + top + done
    raw = from_table(table, where, columns, extra or metadata(table, where), lines=lines, **options)
    remark = raw.roles.remark()
    if first and not raw.roles.usual:
        raw.remarks.insert(0, f"{where}: {remark}")
    if columns.features is None and raw.roles.features:
        columns = replace(columns, features=list(raw.roles.features))
    return raw.load(columns.missing, unlabelled), columns


def _whole_bags(table: pa.Table, where: str, columns: Columns, exact: bool) -> int:
    """How many rows from the top are bags that are complete: all but the last bag's, where a row is an instance."""
    bag = find_roles(where, table.column_names, columns, exact)["bag"]
    nested = any(depth(field.type) >= 2 for field in table.schema)
    if bag is None or nested:
        return int(table.num_rows)
    ids = table[bag].combine_chunks()
    same = pc.fill_null(pc.equal(ids, ids[-1]), True)
    positions = pc.indices_nonzero(pc.invert(same))
    return positions[-1].as_py() + 1 if len(positions) else 0
