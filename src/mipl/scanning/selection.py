"""Which bags of a scan are meant: by conditions on their columns, and by hashes of their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.border import first_line
from mipl.io.lists import whole

__all__ = ["Selection", "hash_keys"]


def hash_keys(ids: Iterable[Any], seed: int, purpose: str) -> NDArray[np.uint64]:
    """A number from 0 to 2**64 - 1 for each id, evenly spread, that depends on the id, the seed and the purpose only.

    >>> hash_keys(["a", "b"], 0, "sample") == hash_keys(["b", "a"], 0, "sample")[::-1]
    array([ True,  True])
    """
    start = hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=8)

    def digest(name: Any) -> bytes:
        each = start.copy()
        each.update(f" {name}".encode())
        return each.digest()

    return np.frombuffer(b"".join(map(digest, ids)), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True)
class _Side:
    """One side of a split: bags whose key is below `bound`, or those at or above it."""

    seed: int
    bound: int
    below: bool


@dataclass(frozen=True)
class Selection:
    """Bags that fulfil all conditions and lie on one side of every split.

    Parameters
    ----------
    conditions : tuple of pyarrow.compute.Expression, default=()
        What `Scan.filter` was given.
    sides : tuple, default=()
        One for each `Scan.split`.
    """

    conditions: tuple[pc.Expression, ...] = ()
    sides: tuple[_Side, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions or self.sides)

    def where(self, condition: pc.Expression) -> Selection:
        """These bags, as far as they fulfil one more condition."""
        return replace(self, conditions=(*self.conditions, condition))

    def split(self, share: float, seed: int) -> tuple[Selection, Selection]:
        """About that share of the bags, and the others."""
        bound = round(share * 2**64)
        first, second = (replace(self, sides=(*self.sides, _Side(seed, bound, below))) for below in (True, False))
        return first, second

    @property
    def condition(self) -> pc.Expression | None:
        """All conditions in one."""
        both = None
        for each in self.conditions:
            both = each if both is None else both & each
        return both

    def rows(self, table: pa.Table, where: str) -> NDArray[np.bool_]:
        """Whether each row of a table fulfils the conditions."""
        condition = self.condition
        if condition is None:
            return np.ones(table.num_rows, dtype=bool)
        try:
            kept = pa.dataset.dataset(table).to_table(columns={"kept": condition})
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise DataError(
                f"{where}: the filter {condition} cannot be applied ({first_line(error)}); it may use the columns "
                f"{', '.join(map(repr, table.column_names))}"
            ) from error
        column = whole(kept, "kept")
        if not pa.types.is_boolean(column.type):
            raise DataError(f"{where}: the filter {condition} gives {column.type}, not true or false")
        mask: NDArray[np.bool_] = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        return mask

    def keys(self, names: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether bags lie on the right side of all splits, by their ids, or their groups where they have any."""
        kept = np.ones(len(names), dtype=bool)
        for depth, side in enumerate(self.sides):
            # A split of a split must not ask the same question again.
            below = hash_keys(names.tolist(), side.seed, f"split {depth}") < np.float64(side.bound)
            kept &= below == side.below
        return kept
