"""What the files of a scan say about the labels: from their metadata, else by one pass over the candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mipl.errors import DataError
from mipl.io.columns import absent
from mipl.io.labels import as_numbers, label_cell
from mipl.io.lists import is_list, whole
from mipl.scanning.facts import Facts
from mipl.scanning.layout import Layout
from mipl.scanning.pieces import Part, Piece, read_pieces
from mipl.scanning.recipe import Labels, Recipe
from mipl.scanning.selection import Selection
from mipl.votes import as_label

__all__ = ["find_labels"]


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
