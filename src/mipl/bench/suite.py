"""Suites: which methods run on which data sets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from mipl.bench.cell import Cell
from mipl.bench.code_version import code_version
from mipl.bench.suite_entries import DatasetEntry, MethodEntry, dataset_entry, method_entries
from mipl.datasets.registry import builder_path
from mipl.errors import DataError
from mipl.registry import code_paths
from mipl.registry import methods as known_methods

__all__ = ["Place", "Suite"]


@dataclass(frozen=True)
class Suite:
    """An experiment: every method on every data set, r and split.

    Parameters
    ----------
    methods : sequence
        Names, dictionaries with the fields of `MethodEntry` (``method`` may be a list of names), or estimators, whose
        parameters are taken over.
    datasets : sequence
        Names, paths, or dictionaries with the fields of `DatasetEntry`.
    r : sequence of int
        Numbers of false positive labels.
    splits : int
        Number of random splits, seeded 0, 1, ...; the same for every method.
    train_size : float
        Share of training bags: 0.5 in the paper, 0.7 in its successors.
    reference : str
        Name of the method that the others are tested against; default the first.
    name, title : str
    absent : sequence of MethodEntry
        Methods that are not run because this installation lacks them; tables can show their published figures.

    Examples
    --------
    >>> suite = Suite(methods=["PL-kNN", {"method": "PL-kNN", "label": "max and min", "params": {"embed": "maxmin"}}],
    ...               datasets=["digits"], r=[1, 2], splits=3)
    >>> len(suite.cells()), suite.reference
    (12, 'PL-kNN')
    """

    methods: Sequence[Any]
    datasets: Sequence[Any]
    r: Sequence[int] = (1,)
    splits: int = 10
    train_size: float = 0.5
    reference: str = ""
    name: str = ""
    title: str = ""
    absent: Sequence[MethodEntry] = ()

    def __post_init__(self) -> None:
        methods = tuple(entry for spec in self.methods for entry in method_entries(spec))
        datasets = tuple(dataset_entry(spec) for spec in self.datasets)
        if not methods or not datasets:
            raise DataError("a suite needs at least one method and one data set")
        for m in methods:
            _check_method(m)
        _check_unique("method", [m.name for m in methods])
        _check_unique(
            "data set", [d.label if not d.r else f"{d.label} with r={r}" for d in datasets for r in d.r or (0,)]
        )
        if not isinstance(self.splits, int) or self.splits < 1:
            raise DataError(f"splits={self.splits!r} must be a positive integer")
        if not 0 < self.train_size < 1:
            raise DataError(f"train_size={self.train_size!r} must lie between 0 and 1")
        if any(not isinstance(r, int) or r < 0 for r in self.r):
            raise DataError(f"r={list(self.r)!r} must be integers of at least 0")
        reference = self.reference or methods[0].name
        if reference not in [m.name for m in methods]:
            raise DataError(f"the reference {reference!r} is none of the methods {', '.join(m.name for m in methods)}")
        checked = {"methods": methods, "datasets": datasets, "r": tuple(self.r), "reference": reference}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def dataset_labels(self) -> list[str]:
        """The columns of tables; files with different r may share one."""
        return list(dict.fromkeys(d.label for d in self.datasets))

    def cells(self) -> dict[Place, Cell]:
        """All cells by their place in the tables.

        They come data set by data set and split by split, so that a worker that takes them in order loads each of
        these once.
        """
        cells = {}
        for d in self.datasets:
            options = _options(d)
            codes = {m.name: _code(m, d) for m in self.methods}
            for r in d.r or ((None,) if d.is_file else self.r):
                for split, m in product(range(self.splits), self.methods):
                    cells[Place(d.label, r, split, m.name)] = Cell(
                        dataset=d.load,
                        r=None if d.is_file else r,
                        method=m.method,
                        split=split,
                        train_size=self.train_size,
                        options=options,
                        scale=d.scale,
                        params={**m.params, **m.on.get(d.load, {})},
                        code=codes[m.name],
                    )
        return cells

    def select(
        self, *, methods: Iterable[str] = (), datasets: Iterable[str] = (), r: Iterable[int] = (), **changes: Any
    ) -> Suite:
        """Return the part of the suite that is named, with `changes` of `splits`, `train_size` or `reference`.

        A method is named as in tables, with or without its group; what is left empty stays whole.
        """
        every_r = sorted({*self.r, *(value for d in self.datasets for value in d.r if value is not None)})
        kept_r = set(_chosen("r", r, every_r, lambda value: (value,)))
        kept = _chosen("method", methods, self.methods, lambda m: (m.name, m.label))
        names = [m.name for m in kept]
        changes.setdefault("reference", self.reference if self.reference in names else names[0])
        if len(kept) < len(self.methods):
            changes["absent"] = ()
        entries = _chosen("data set", datasets, self.datasets, lambda d: (d.label, d.load))
        own_r = [tuple(value for value in d.r if value in kept_r) for d in entries]
        entries = [replace(d, r=own) for d, own in zip(entries, own_r, strict=True) if own or not d.r]
        return replace(self, methods=kept, datasets=entries, r=tuple(v for v in self.r if v in kept_r), **changes)


class Place(NamedTuple):
    """Where a cell stands in the tables of a suite, by the labels of its data set and method."""

    dataset: str
    r: int | None
    split: int
    method: str


def _check_method(m: MethodEntry) -> None:
    if m.method not in known_methods() and ":" not in m.method:
        raise DataError(f'unknown method {m.method!r}; name one of {", ".join(known_methods())} or a "module:Class"')
    try:
        json.dumps([m.params, m.on])
    except TypeError as error:
        raise DataError(f"{m.name}: parameters must be plain numbers, strings, lists or tables: {error}") from error


def _check_unique(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the {what} {name!r} occurs {names.count(name)} times; give each a label of its own")


def _chosen(what: str, wanted: Iterable[Any], entries: Sequence[Any], names: Callable[[Any], tuple[Any, ...]]) -> Any:
    chosen = list(wanted)
    for name in chosen:
        if not any(name in names(entry) for entry in entries):
            known = ", ".join(str(names(entry)[0]) for entry in entries)
            raise DataError(f"the suite has no {what} {name!r}; it has {known}")
    return [entry for entry in entries if not chosen or any(name in chosen for name in names(entry))]


# -------------------------------------------------------------------- identity


def _options(dataset: DatasetEntry) -> dict[str, Any]:
    if not dataset.is_file:
        return dataset.options
    return {"sha256": hashlib.sha256(Path(dataset.load).read_bytes()).hexdigest()}


def _code(method: MethodEntry, dataset: DatasetEntry) -> str:
    paths = list(code_paths(method.method)) if method.method in known_methods() else [method.method]
    if not dataset.is_file:
        paths.append(builder_path(dataset.load))
    return code_version(*(path.partition(":")[0] for path in paths))
