"""Bags of large files chunk by chunk, in bounded memory: Parquet and plain text.

A chunk holds whole bags. In a table with one row per instance the rows of a bag must then lie together, as nobody can
know that no more of them follow; a bag that comes again is an error. Other formats come in one chunk per file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.columns import Columns, find_roles
from mipl.io.csv import open_text
from mipl.io.lists import depth, first_line
from mipl.io.raw import Loaded
from mipl.io.sources import expand, file_format, read_raw
from mipl.io.tabular import from_table, metadata

__all__ = ["read_chunks"]

_ROWS = 50_000


def read_chunks(
    sources: Sequence[str | Path],
    columns: Columns | None = None,
    unlabelled: Sequence[Any] | None = None,
    rows: int = _ROWS,
    **images: Any,
) -> Iterator[Loaded]:
    """Read data sets of about `rows` rows of the files each.

    Parameters
    ----------
    sources : sequence of str or Path
        As in `mipl.io.sources.read_files`.
    columns : Columns, default=None
        What the user says about the columns; ``missing="mean"`` is refused, as a mean needs all rows.
    unlabelled : sequence of labels, default=None
        The classes that a bag without candidates may have; None refuses such bags.
    rows : int, default=50000
        How many rows of a file are read at a time.
    **images
        Options of `mipl.io.images.read`.
    """
    columns = columns or Columns()
    if columns.missing == "mean":
        raise DataError("missing='mean' needs all rows at once, so the file cannot be read in chunks; use 'drop'")
    owner: dict[Any, str] = {}
    for file in expand(sources):
        for part in _chunks(file, columns, unlabelled, rows, images):
            for each in part.dataset.bag_ids.tolist():
                if each in owner:
                    raise DataError(
                        f"the bag {each!r} of {owner[each]} comes again in {file}; to read large files in chunks, the "
                        "rows of a bag must lie together: sort them by the bag"
                    )
                owner[each] = str(file)
            yield part


def _chunks(
    file: Path, columns: Columns, unlabelled: Sequence[Any] | None, rows: int, images: dict[str, Any]
) -> Iterator[Loaded]:
    suffix, compression = file_format(file)
    if suffix in (".parquet", ".pq") and not compression and file.is_file():
        yield from _loaded(file, _parquet_tables(file, rows), columns, unlabelled, {})
    elif suffix in (".csv", ".tsv", ".txt") and not compression and file.is_file():
        tables, extra, options = open_text(file, columns, rows)
        yield from _loaded(file, tables, columns, unlabelled, extra, **options)
    else:
        found = read_raw(file, columns, **images)
        yield Loaded(found) if isinstance(found, MIPLDataset) else found.load(columns.missing, unlabelled)


def _parquet_tables(file: Path, rows: int) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=rows):
                table = pa.Table.from_batches([batch])
                yield table.replace_schema_metadata(opened.schema_arrow.metadata)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file} is damaged or not a Parquet file ({first_line(error)})") from error


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
        table = part if rest is None else pa.concat_tables([rest, part])
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
    line = None if top is None else top + done
    raw = from_table(table, where, columns, extra or metadata(table, where), top=line, **options)
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
        return table.num_rows
    ids = table[bag].combine_chunks()
    same = pc.fill_null(pc.equal(ids, ids[-1]), True)
    positions = pc.indices_nonzero(pc.invert(same))
    return positions[-1].as_py() + 1 if len(positions) else 0
