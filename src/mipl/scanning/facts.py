"""What the footer of a file tells, read once."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from mipl.scanning.files import ScanFile
from mipl.scanning.layout import Layout
from mipl.scanning.rows import ParquetRows

__all__ = ["Facts", "read_facts"]


class Facts(NamedTuple):
    """The rows and columns of one file.

    Attributes
    ----------
    path : its name
    groups : rows of each row group or record batch
    instances : instances of each; None where the lists must be read to count them
    names : its columns, those of folder names included
    roles : which column is the bag, the candidates, the label
    extra : what mipl wrote beside the columns
    named_groups : whether the groups of bags have names and not numbers
    """

    path: str
    groups: list[int]
    instances: list[int] | None
    names: list[str]
    roles: dict[str, str | None]
    extra: dict[str, Any]
    named_groups: bool


def read_facts(file: ScanFile, layout: Layout) -> Facts:
    """Read the footer of a file."""
    with file.open() as rows:
        instances: list[int] | None = rows.groups
        if layout.instances is not None:
            counted = isinstance(rows, ParquetRows) and layout.instances in rows.schema.names
            instances = rows.instances_of(layout.instances, layout.width) if counted else None
        named = False
        if "group" in rows.schema.names:
            kind = rows.schema.field("group").type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            named = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        return Facts(file.path, rows.groups, instances, rows.names, layout.roles(rows, file.path), rows.extra, named)
