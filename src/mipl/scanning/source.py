"""The files behind a scan, and what is known of them: read when it is first asked for, and shared by derived scans."""

from __future__ import annotations

import zlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.io.border import border
from mipl.io.columns import Columns
from mipl.scanning.facts import Facts, read_facts
from mipl.scanning.files import ScanFile
from mipl.scanning.labels import find_labels
from mipl.scanning.layout import Layout, find_layout
from mipl.scanning.pieces import Part
from mipl.scanning.recipe import Labels, Recipe

__all__ = ["Source"]


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
