"""What the columns of scanned files are: found once, in the first rows, and the same for all chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from mipl.errors import DataError
from mipl.io.columns import Columns, find_roles, taken_names
from mipl.io.image_columns import has_images
from mipl.io.tabular import from_table, instances_column, metadata
from mipl.scanning.files import ScanFile
from mipl.scanning.rows import Rows

__all__ = ["Layout", "find_layout"]

#: Rows from which it is decided which columns are features.
_HEAD_ROWS = 1000
#: Columns beside the roles that belong to bags or instances.
_OWN = ("weights", "instance_labels", "instance_label", "group")


@dataclass(frozen=True)
class Layout:
    """How rows become bags.

    Parameters
    ----------
    columns : Columns
        What the user said, with the feature columns by name.
    instances : str or None
        The column of lists of instances where a row is a bag; None where a row is an instance.
    width : int
        Features of an instance in the files.
    n_features : int
        Features d of an instance that are taken.
    feature_names : tuple of str or None
        Their names in the order of all chunks.
    instance_shape : tuple of int
        The shape of an instance.
    name, description : str
        What the data set is called, and where it comes from.
    remark : str or None
        What the columns were taken for, where it is not as usual.
    labelled : bool
        Whether there are candidates.
    """

    columns: Columns
    instances: str | None
    width: int
    n_features: int
    feature_names: tuple[str, ...] | None
    instance_shape: tuple[int, ...]
    name: str
    description: str
    remark: str | None
    labelled: bool

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The columns of the files that hold features."""
        if self.instances is not None:
            return (self.instances,)
        return tuple(self.columns.features or ())

    def roles(self, rows: Rows, path: str) -> dict[str, str | None]:
        """Which column of a file is the bag, the candidates, the label and the instance id."""
        return find_roles(path, rows.names, self.columns, exact=bool(rows.extra))

    def read_columns(self, rows: Rows, path: str) -> list[str]:
        """The columns of a file that a data set needs."""
        own = [name for name in _OWN if name in rows.schema.names]
        return [*filter(None, self.roles(rows, path).values()), *own, *self.feature_columns]

    def bag_columns(self, rows: Rows) -> list[str]:
        """The columns of a file that a filter may ask for: all but the features."""
        return [name for name in rows.names if name not in self.feature_columns]

    def select(self, features: Sequence[str]) -> Layout:
        """The layout with some of the features only."""
        if self.feature_names is None:
            raise DataError("the files have no feature names to select by")
        taken = tuple(taken_names("the scan", self.feature_names, features, "features"))
        wide = self.instances is None and self.feature_columns == self.feature_names
        columns = replace(self.columns, features=list(taken)) if wide else self.columns
        return replace(self, columns=columns, n_features=len(taken), feature_names=taken, instance_shape=(len(taken),))


def find_layout(files: Sequence[ScanFile], columns: Columns) -> Layout:
    """Read the first rows of the first file that has any."""
    if columns.missing == "mean":
        raise DataError("missing='mean' needs all rows at once, so it cannot be had in a scan; use 'drop'")
    for file in files:
        with file.open() as rows:
            if has_images(rows.schema):
                raise DataError(
                    f"{file.path} has a column of images, which a scan does not decode; mipl.load(...) does, and its "
                    ".save('x.parquet') writes pixels, which can be scanned"
                )
            if not sum(rows.groups):
                continue
            columns = columns.in_file(rows.names)
            roles = find_roles(file.path, rows.names, columns, exact=bool(rows.extra))
            named = {*(v for v in roles.values() if v), *_named(columns.features)}
            names = [name for name in rows.names if name in rows.schema.names or name in named]
            _check_bag(rows, roles["bag"], file.path)
            head = _head(rows, names, 1)
            instances = instances_column(head, file.path, columns, roles)
            bag = roles["bag"]
            # A row may also be an instance that is itself an image; "instances" is what mipl writes, one row per bag.
            repeated = instances not in (None, "instances") and bag is not None and _repeats(rows, bag)
            if instances is None or repeated:
                instances, head = None, _head(rows, names, _HEAD_ROWS)
            return _layout(head, file, columns, instances)
    raise DataError(f"{files[0].path}: the files have no rows: the data set is empty")


def _head(rows: Rows, names: Sequence[str], count: int) -> pa.Table:
    return pa.concat_tables([table for _, table in rows.tables(names, 0, count, lambda _: count)])


def _repeats(rows: Rows, bag: str) -> bool:
    ids = _head(rows, [bag], _HEAD_ROWS)
    return bool(len(ids[bag].unique()) < ids.num_rows)


def _layout(head: pa.Table, file: ScanFile, columns: Columns, instances: str | None) -> Layout:
    raw = from_table(head, file.path, columns, metadata(head, file.path), nested=instances is not None)
    return Layout(
        columns=replace(columns, features=list(raw.roles.features), ignore=None),
        instances=instances,
        width=raw.values.shape[1],
        n_features=raw.values.shape[1],
        feature_names=None if raw.feature_names is None else tuple(raw.feature_names),
        instance_shape=tuple(raw.instance_shape or (raw.values.shape[1],)),
        name=Path(file.path).stem if raw.name is None else raw.name,
        description=raw.description,
        remark=None if raw.roles.usual else f"{file.path}: {raw.roles.remark()}",
        labelled=raw.candidates is not None,
    )


def _check_bag(rows: Rows, bag: str | None, path: str) -> None:
    if bag is None or bag not in rows.schema.names:
        return
    kind: Any = rows.schema.field(bag).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{path}: the bags {bag!r} are of type {kind}; a scan needs integers or text, so cast them")


def _named(features: str | Sequence[str] | None) -> list[str]:
    return [] if features is None else [features] if isinstance(features, str) else list(features)
