"""From pieces of files to data sets with the same classes, features and metadata in every chunk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mipl.bags import Bags
from mipl.errors import DataError
from mipl.io.cells import label_cell, whole
from mipl.io.raw import Loaded, RawBags, join
from mipl.io.table import from_table, metadata
from mipl.scanning.pieces import Layout, Piece
from mipl.votes import SET_WEIGHT

__all__ = ["Labels", "Recipe"]

#: A column that stands for the features where these are not read.
_NO_FEATURES = "no features"


class Labels(NamedTuple):
    """What all files together say about the labels.

    Attributes
    ----------
    classes : list of labels, in their order; None where each chunk has its own
    weighted : whether some bag has votes or weights, so that every chunk has weights
    background : label of the background class, or None
    instance_labels : whether every file has instance labels, and they mean the same in all of them
    groups : whether every file has groups
    group_numbers : from the names of groups to their numbers, where they have names; else None
    """

    classes: list[Any] | None = None
    weighted: bool = False
    background: Any = None
    instance_labels: bool = True
    groups: bool = True
    group_numbers: dict[str, int] | None = None


@dataclass(frozen=True)
class Recipe:
    """How pieces become a data set.

    Parameters
    ----------
    layout : Layout
        What the columns are.
    labels : Labels
        What all files together say about the labels.
    unlabelled : list of labels, default=None
        The classes that a bag without candidates may have; None refuses such bags.
    reading : dict, default={}
        As `MIPLDataset.reading`.
    """

    layout: Layout
    labels: Labels = field(default_factory=Labels)
    unlabelled: list[Any] | None = None
    reading: dict[str, Any] = field(default_factory=dict)

    def load(self, pieces: Sequence[Piece]) -> Loaded:
        """The data set of pieces, with the ids of its instances."""
        return self._finish(self._raw(pieces))

    def load_bags(self, pieces: Sequence[Piece]) -> Bags:
        """The bags of pieces of which only ids and features were read."""
        return self._raw(pieces).load_bags(self.layout.columns.missing)

    def load_labels(self, pieces: Sequence[Piece]) -> Loaded:
        """The data set of pieces of which the features were not read; each instance has one feature, which is 0."""
        return self._finish(self.raw_labels(pieces))

    def raw_labels(self, pieces: Sequence[Piece]) -> RawBags:
        """As `load_labels`, before it is checked."""
        layout = self.layout
        if layout.instances is None:
            columns = replace(layout.columns, features=[_NO_FEATURES], instance_id=None)
            blank = replace(layout, columns=columns, feature_names=(_NO_FEATURES,))
        else:
            columns = replace(layout.columns, instance_id=None)
            blank = replace(layout, columns=columns, feature_names=None)
        blank = replace(blank, n_features=1, instance_shape=(1,))
        return replace(self, layout=blank)._raw([_without_features(piece, layout.instances) for piece in pieces])

    def _finish(self, raw: RawBags) -> Loaded:
        labels = self.labels
        raw.name, raw.description = self.layout.name, self.layout.description
        if labels.classes is not None:
            raw.classes = labels.classes
        raw.background = labels.background
        if labels.weighted and raw.candidates is not None:
            entries = raw.candidates
            raw.candidates = [e if isinstance(e, dict) or not e else dict.fromkeys(e, SET_WEIGHT) for e in entries]
        loaded = raw.load(self.layout.columns.missing, self.unlabelled)
        loaded.dataset.reading = self.reading
        return loaded

    def _raw(self, pieces: Sequence[Piece]) -> RawBags:
        """Pieces of one file are read together, those of several are joined; features in the order of the layout."""
        files: dict[str, list[pa.Table]] = {}
        for piece in pieces:
            files.setdefault(piece.file.path, []).append(piece.table)
        parts = [self._file(path, tables) for path, tables in files.items()]
        raw = parts[0] if len(parts) == 1 else join(list(files), parts)
        # Whether these are the same in all files is known for all files together, and not by the few of a chunk.
        own = [part.instance_labels for part in parts if part.instance_labels is not None]
        kept = self.labels.instance_labels and len(own) == len(parts)
        raw.instance_labels = np.concatenate(own) if kept else None
        raw.groups = raw.groups if self.labels.groups else None
        return raw

    def _file(self, path: str, tables: list[pa.Table]) -> RawBags:
        layout = self.layout
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
        table = table.replace_schema_metadata(tables[0].schema.metadata)
        if self.labels.group_numbers is not None and "group" in table.column_names:
            table = _numbered_groups(table, self.labels.group_numbers)
        raw = from_table(table, path, layout.columns, metadata(table, path), nested=layout.instances is not None)
        have = raw.feature_names
        if layout.feature_names is None or have is None:
            if raw.values.shape[1] != layout.n_features or (have is None) != (layout.feature_names is None):
                raise DataError(
                    f"{path} has {raw.values.shape[1]} features, the first file has {layout.n_features}, and not both "
                    "have names for them; all files must have the same features"
                )
        elif tuple(have) != layout.feature_names:
            column = {name: j for j, name in enumerate(have)}
            lost = [name for name in layout.feature_names if name not in column]
            if lost:
                raise DataError(f"{path} has no feature {lost[0]!r}, which the first file has")
            raw.values = raw.values[:, [column[name] for name in layout.feature_names]]
            raw.feature_names = layout.feature_names
        raw.instance_shape = layout.instance_shape
        return raw


def _without_features(piece: Piece, instances: str | None) -> Piece:
    """The piece with a feature that is 0 in every instance, one instance per bag where a row is a bag."""
    zeros = pa.array(np.zeros(piece.table.num_rows, dtype=np.float32))
    # Names and shapes of features in the metadata of mipl are those of the features that are not there.
    extra = {**metadata(piece.table, piece.file.path), "feature_names": None, "instance_shape": [1]}
    table = piece.table
    if b"mipl" in (table.schema.metadata or {}):
        table = table.replace_schema_metadata({**table.schema.metadata, b"mipl": json.dumps(extra)})
    if instances is None:
        return replace(piece, table=table.append_column(_NO_FEATURES, zeros))
    table = table.drop_columns([n for n in ("instance_labels", instances) if n in table.column_names])
    edges = np.arange(table.num_rows + 1, dtype=np.int32)
    lists = pa.ListArray.from_arrays(edges, pa.FixedSizeListArray.from_arrays(zeros, 1))
    return replace(piece, table=table.append_column(instances, lists))


def _numbered_groups(table: pa.Table, numbers: dict[str, int]) -> pa.Table:
    cells = [label_cell(v) for v in whole(table, "group").to_pylist()]
    column = pa.array([None if v is None else numbers[str(v)] for v in cells], pa.int64())
    return table.set_column(table.column_names.index("group"), "group", column)
