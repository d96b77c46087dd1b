"""Where the bags of a scan lie: one pass over the column of bag ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.scanning.layout import Layout
from mipl.scanning.pieces import Piece, read_pieces
from mipl.scanning.selection import Selection
from mipl.scanning.source import Source

__all__ = ["Index", "build_index"]


@dataclass(frozen=True)
class Index:
    """The bags of a scan in their order.

    Parameters
    ----------
    ids : (m,) array
        What they are called.
    first : (m,) int64
        The row of the scan at which each begins.
    rows : (m,) int64
        The rows of each: 1 where a row is a bag, else its instances.
    """

    ids: NDArray[Any]
    first: NDArray[np.int64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


def build_index(source: Source, selection: Selection) -> Index:
    """Read the ids of all selected bags; a bag that comes again is an error."""
    pieces: list[Piece] = []
    fresh: list[Piece] = []
    for piece in read_pieces(source.parts(), source.layout, selection, what="ids"):
        bare = Piece(piece.file, piece.table.slice(0, 0), piece.ids, piece.first, piece.rows, piece.rows)
        if fresh and fresh[0].file != piece.file:
            _check_unique(fresh, source.layout)  # an unsorted file is told before all others are read
            fresh = []
        fresh.append(bare)
        pieces.append(bare)
    if not pieces:
        none = np.array([], dtype=np.int64)
        return Index(none, none, none)
    _check_unique(pieces, source.layout)
    return Index(_joined(pieces), *(np.concatenate([getattr(p, n) for p in pieces]) for n in ("first", "rows")))


def _joined(pieces: list[Piece]) -> NDArray[Any]:
    kinds = {piece.ids.dtype.kind for piece in pieces}
    return np.concatenate([piece.ids.astype(str) if len(kinds) > 1 else piece.ids for piece in pieces])


def _check_unique(pieces: list[Piece], layout: Layout) -> None:
    ids = _joined(pieces)
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if not len(again):
        return
    one, other = order[again[0]], order[again[0] + 1]
    ends = np.cumsum([len(piece.ids) for piece in pieces])
    files = [pieces[int(np.searchsorted(ends, i, side="right"))].file.path for i in (one, other)]
    where = f"in {files[0]}" if files[0] == files[1] else f"of {files[0]} comes again in {files[1]}"
    bag = layout.columns.bag or "bag_id"
    if layout.instances is not None:
        twice = "occurs twice " if files[0] == files[1] else ""
        raise DataError(f"the bag {ids[one].item()!r} {twice}{where}; with one row per bag, ids must be unique")
    later = "comes again later " if files[0] == files[1] else ""
    raise DataError(
        f"the bag {ids[one].item()!r} {later}{where}; a scan needs the rows of a bag one after the other: sort them, "
        f"with DuckDB: COPY (SELECT * FROM '{files[0]}' ORDER BY {bag}) TO 'sorted.parquet'; or with pyarrow: "
        f"pq.write_table(pq.read_table('{files[0]}').sort_by('{bag}'), 'sorted.parquet')"
    )
