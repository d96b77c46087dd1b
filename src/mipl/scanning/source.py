"""The files behind a scan: what is known of them, read when it is first asked for, and how their rows become data sets.

Classes, features and metadata are the same in every chunk.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.errors import DataError
from mipl.io.border import border
from mipl.io.cells import as_numbers, is_list, label_cell, whole
from mipl.io.columns import absent
from mipl.io.options import Columns
from mipl.io.raw import Loaded, RawBags, join
from mipl.io.table import from_table, metadata
from mipl.scanning.files import ParquetRows, ScanFile
from mipl.scanning.pieces import Layout, Part, Piece, Selection, find_layout, read_pieces
from mipl.votes import SET_WEIGHT, as_label

__all__ = ["Labels", "Recipe", "Source"]

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


def find_labels(
    parts: Sequence[Part], facts: Sequence[Facts], layout: Layout, unlabelled: Sequence[Any] | None
) -> Labels:
    """The classes of all files, and which columns all of them have.

    Where every file has the metadata of mipl, these name the classes; else the columns of candidates are read, and
    those of labels where bags may be without candidates.

    Parameters
    ----------
    parts : sequence of Part
        All rows of all files.
    facts : sequence of Facts
        What the footers of all files tell.
    layout : Layout
        What the columns are.
    unlabelled : sequence of labels, or None
        The classes that a bag without candidates may have; None refuses such bags.
    """
    facts = [each for each in facts if sum(each.groups)]  # an empty file has no say
    if unlabelled is None and not any(each.roles["candidates"] for each in facts):
        told = absent(facts[0].path, facts[0].names, "candidates")
        raise DataError(f"{told}; only predict and explain take bags without candidates")
    background = next((s.extra["background"] for s in facts if s.extra.get("background") is not None), None)
    own = [each.extra.get("classes") for each in facts]
    weighted = layout.instances is not None and any("weights" in each.names for each in facts)
    named = [classes for classes in own if classes is not None]
    if unlabelled is None and len(named) == len(own):
        classes = _union(named)
    else:
        found = _read_labels(parts, {each.path: each for each in facts}, layout)
        weighted = weighted or found.weighted
        classes = found.classes(own, unlabelled)
        own = [given or sorted(found.candidates.get(s.path, {})) for given, s in zip(own, facts, strict=True)]
    if len({type(name) for name in classes}) > 1:
        raise DataError(
            f"{facts[0].path} and other files: labels mix integers and text, such as {classes[:3]}; use one kind"
        )
    column = "instance_label" if layout.instances is None else "instance_labels"
    return Labels(
        classes=classes,
        weighted=weighted,
        background=background,
        instance_labels=all(column in each.names for each in facts) and all(names == own[0] for names in own),
        groups=all("group" in each.names for each in facts),
        group_numbers=_group_numbers(parts, facts),
    )


class _Found:
    """Labels in the order in which they occur: candidates per file, and the true labels."""

    def __init__(self) -> None:
        self.candidates: dict[str, dict[Any, None]] = {}
        self.labels: dict[Any, None] = {}
        self.weighted = False

    def classes(self, own: Sequence[list[Any] | None], unlabelled: Sequence[Any] | None) -> list[Any]:
        """All classes in the order that `mipl.load` gives them."""
        occurring = dict.fromkeys(label for each in self.candidates.values() for label in each)
        named = [classes for classes in own if classes is not None]
        known = None if not named else _union([*named, list(occurring)] if len(own) > 1 else named)
        if unlabelled is not None:
            return list(dict.fromkeys([*(known or []), *unlabelled, *self.labels, *occurring]))
        return known if known is not None else sorted(occurring, key=lambda label: (isinstance(label, str), label))


def _read_labels(parts: Sequence[Part], facts: Mapping[str, Facts], layout: Layout) -> _Found:
    found = _Found()
    for piece in read_pieces(parts, layout, Selection(), what="labels"):
        own = found.candidates.setdefault(piece.file.path, {})
        lists = _lists(piece, facts[piece.file.path].roles)
        if lists is not None:
            own |= dict.fromkeys(_labels(lists[0], piece))
            found.labels |= dict.fromkeys(_labels(lists[1], piece))
            continue
        raw = Recipe(layout).raw_labels([piece])
        for entry in raw.candidates or []:
            own |= dict.fromkeys(entry)
            found.weighted |= isinstance(entry, dict)
        found.labels |= dict.fromkeys(label for label in raw.labels or [] if label is not None)
    return found


def _lists(piece: Piece, roles: Mapping[str, str | None]) -> tuple[pa.Array, pa.Array] | None:
    """All candidates and all labels of a piece, where its candidates are plain lists of names or integers."""
    other = {b"mipl", b"huggingface"} & set(piece.table.schema.metadata or {})
    if roles["candidates"] is None or other or "weights" in piece.table.column_names:
        return None
    column = whole(piece.table, roles["candidates"])
    inner = column.type.value_type if is_list(column.type) else pa.null()
    if not (pa.types.is_string(inner) or pa.types.is_integer(inner)):
        return None
    labels = pa.array([], pa.string()) if roles["label"] is None else whole(piece.table, roles["label"])
    return column.flatten(), labels


def _labels(values: pa.Array, piece: Piece) -> Iterator[Any]:
    cells = (label_cell(value) for value in pc.unique(values).to_pylist())
    return (as_label(f"{piece.file.path}: the label", label) for label in cells if label is not None)


def _union(lists: Iterable[list[Any]]) -> list[Any]:
    """Classes of several files: in the first one's order if they are the same, else sorted."""
    everything = list(lists)
    names = list(dict.fromkeys(name for each in everything for name in each))
    return names if len(names) == len(everything[0]) else sorted(names, key=lambda name: (isinstance(name, str), name))


def _group_numbers(parts: Sequence[Part], facts: Sequence[Facts]) -> dict[str, int] | None:
    """Numbers of groups that have names; groups named by integers keep these."""
    if not any(each.named_groups for each in facts):
        return None
    names: set[str] = set()
    for part in parts:
        with part.file.open() as rows:
            if "group" in rows.schema.names:
                for _, table in rows.tables(["group"], part.start, part.stop, lambda _: 65_536):
                    cells = map(label_cell, pc.unique(whole(table, "group")).to_pylist())
                    names |= {str(cell) for cell in cells if cell is not None}
    ordered = sorted(names)
    numbers = as_numbers(ordered)
    return dict(zip(ordered, numbers.tolist() if numbers.dtype.kind == "i" else range(len(ordered)), strict=True))


class Groups(NamedTuple):
    """Row groups of all files, in order.

    Attributes
    ----------
    file : (g,) the file of each
    edges : (g + 1,) the row of the scan at which each begins
    """

    file: NDArray[np.int64]
    edges: NDArray[np.int64]


class Source:
    """Files and what the user says about their columns."""

    def __init__(self, files: tuple[ScanFile, ...], columns: Columns, unlabelled: list[Any] | None) -> None:
        self.files = files
        self.columns = columns
        self.unlabelled = unlabelled

    @cached_property
    def layout(self) -> Layout:
        """What the columns are, from the first rows."""
        return find_layout(self.files, self.columns)

    @cached_property
    def facts(self) -> list[Facts]:
        """What the footers of all files tell."""
        return [read_facts(file, self.layout) for file in self.files]

    @cached_property
    def groups(self) -> Groups:
        """The row groups of all files."""
        counts = [count for facts in self.facts for count in facts.groups]
        file = [i for i, facts in enumerate(self.facts) for _ in facts.groups]
        return Groups(np.array(file, dtype=np.int64), np.cumsum([0, *counts], dtype=np.int64))

    @cached_property
    def group_instances(self) -> NDArray[np.int64]:
        """The instances (g,) in each row group; from the footers for Parquet."""
        counts: list[int] = []
        for file, facts in zip(self.files, self.facts, strict=True):
            if facts.instances is not None:
                counts += facts.instances
                continue
            with file.open() as rows:
                counts += rows.instances_of(str(self.layout.instances), self.layout.width)
        return np.array(counts, dtype=np.int64)

    @cached_property
    def file_edges(self) -> NDArray[np.int64]:
        """The row of the scan at which each file begins (f + 1,)."""
        sizes = np.zeros(len(self.files), dtype=np.int64)
        np.add.at(sizes, self.groups.file, np.diff(self.groups.edges))
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def labels(self) -> Labels:
        """Classes and what else all files together say about the labels."""
        with border(self.files[0].path if len(self.files) == 1 else "the scan", "files of bags"):
            return find_labels(self.parts(), self.facts, self.layout, self.unlabelled)

    def recipe(self, layout: Layout) -> Recipe:
        """How pieces become data sets."""
        # Bags without candidates can be read for predictions; asking for their data sets is an error then.
        labels = self.labels if self.layout.labelled or self.unlabelled is not None else Labels()
        return Recipe(layout, labels, None if self.unlabelled is None else labels.classes, self.columns.said())

    def parts(self, start: int = 0, stop: int | None = None) -> list[Part]:
        """The rows of the scan from `start` to `stop` (None: the last), file by file."""
        edges = self.file_edges
        stop = int(edges[-1]) if stop is None else stop
        found = []
        for i, file in enumerate(self.files):
            low, high = max(start, int(edges[i])), min(stop, int(edges[i + 1]))
            if low < high:
                found.append(Part(file, low - int(edges[i]), high - int(edges[i]), int(edges[i])))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Paths and digests of states, packed; what was read of the files is read again where it is needed."""
        paths = zlib.compress("\0".join(file.path for file in self.files).encode(), 9)
        states = b"".join(file.state for file in self.files)
        partitions = tuple(file.partition for file in self.files)
        packed = None if not any(partitions) else partitions
        return _unpacked, (paths, states, packed, self.columns, self.unlabelled)


def _unpacked(paths: bytes, states: bytes, partitions: Any, columns: Columns, unlabelled: list[Any] | None) -> Source:
    names = zlib.decompress(paths).decode().split("\0")
    files = [
        ScanFile(name, states[4 * i : 4 * i + 4], () if partitions is None else partitions[i])
        for i, name in enumerate(names)
    ]
    return Source(tuple(files), columns, unlabelled)
