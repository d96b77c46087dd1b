"""Suites: which methods run on which data sets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mipl.bench.suite.cell import Cell
from mipl.bench.suite.code_version import code_version
from mipl.bench.suite.entries import (
    DatasetEntry,
    MethodEntry,
    check_table,
    check_train_size,
    dataset_entry,
    method_entries,
)
from mipl.bench.suite.scores import DEFAULT_SCORES, check_scores
from mipl.datasets.registry import builder_path
from mipl.errors import DataError
from mipl.registry import code_paths
from mipl.registry import methods as known_methods

__all__ = ["Place", "Suite"]

#: All cells of a suite are listed in memory.
_MOST_SPLITS = 100_000


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
    r : sequence of int, default=(1,)
        Numbers of false positive labels.
    splits : int, default=10
        Number of random splits, the same for every method.
    first_split : int, default=0
        Seed of the first split; the others follow.
    draw : {"once", "per-split"}, default="once"
        "once": all splits divide the same bags, those of seed 0 unless a data set's options say otherwise.
        "per-split": the seed of a split draws the bags as well.
    train_size : float, default=0.5
        Share of training bags: 0.5 in the paper, 0.7 in its successors.
    scores : sequence of str, default=("accuracy", "log_loss", "ece", "ece_chance")
        What is recorded of each cell, see `mipl.bench.suite.scores`; accuracy always is. A method without
        `predict_proba` has accuracy alone.
    reference : str, default=""
        Name of the method that the others are tested against; "" for the first.
    name, title : str, default=""
        Short and long name.
    absent : sequence of MethodEntry, default=()
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
    first_split: int = 0
    draw: Literal["once", "per-split"] = "once"
    train_size: float = 0.5
    scores: Sequence[str] = DEFAULT_SCORES
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
        if not isinstance(self.splits, int) or not 1 <= self.splits <= _MOST_SPLITS:
            raise DataError(f"splits={self.splits!r} must be an integer between 1 and {_MOST_SPLITS:,}")
        if not isinstance(self.first_split, int) or not 0 <= self.first_split < 2**31:
            raise DataError(f"first_split={self.first_split!r} must be an integer of at least 0, below 2**31")
        check_train_size(self.train_size)
        _check_draw(self.draw, datasets)
        if any(not isinstance(r, int) or r < 0 for r in self.r):
            raise DataError(f"r={list(self.r)!r} must be integers of at least 0")
        reference = self.reference or methods[0].name
        if reference not in [m.name for m in methods]:
            raise DataError(f"the reference {reference!r} is none of the methods {', '.join(m.name for m in methods)}")
        checked = {"methods": methods, "datasets": datasets, "r": tuple(self.r), "reference": reference,
                   "scores": check_scores(self.scores)}  # fmt: skip
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def dataset_labels(self) -> list[str]:
        """The columns of tables; files with different r may share one."""
        return list(dict.fromkeys(d.label for d in self.datasets))

    def train_size_of(self, dataset: DatasetEntry) -> float:
        """The share of training bags of a data set: its own, or the suite's."""
        return self.train_size if dataset.train_size is None else dataset.train_size

    def cells(self) -> dict[Place, Cell]:
        """All cells by their place in the tables.

        They come data set by data set and split by split, so that a worker that takes them in order loads each of
        these once.
        """
        cells = {}
        seeds = range(self.first_split, self.first_split + self.splits)
        for d in self.datasets:
            options = _options(d)
            codes = {m.name: _code(m, d) for m in self.methods}
            for r in d.r or ((None,) if d.is_file else self.r):
                for split, m in product(seeds, self.methods):
                    cells[Place(d.label, r, split, m.name)] = Cell(
                        dataset=d.load,
                        r=None if d.is_file else r,
                        method=m.method,
                        split=split,
                        train_size=self.train_size_of(d),
                        options=options if self.draw == "once" else {**options, "seed": split},
                        scale=d.scale,
                        params={**m.params, **m.on.get(d.load, {})},
                        code=codes[m.name],
                    )
        return cells

    def select(
        self, *, methods: Iterable[str] = (), datasets: Iterable[str] = (), r: Iterable[int] = (), **changes: Any
    ) -> Suite:
        """Return the part of the suite that is named, with `changes` of `splits`, `train_size` or `reference`.

        A method is named as in tables, with or without its group; what is left empty stays whole. A `train_size` leaves
        out the data sets that have another one of their own.
        """
        every_r = sorted({*self.r, *(value for d in self.datasets for value in d.r if value is not None)})
        kept_r = set(_chosen("r", r, every_r, lambda value: (value,)))
        kept = _chosen("method", methods, self.methods, lambda m: (m.name, m.label))
        names = [m.name for m in kept]
        changes.setdefault("reference", self.reference if self.reference in names else names[0])
        if len(kept) < len(self.methods):
            changes["absent"] = ()
        entries = _chosen("data set", datasets, self.datasets, lambda d: (d.label, d.load))
        share = changes.get("train_size")
        if share is not None:
            entries = [d for d in entries if d.train_size in (None, share)]
            if not entries:
                raise DataError(f"the suite has no data set with train_size={share}; each of them has one of its own")
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
    check_table(f"the parameters of the method {m.name!r}", m.params)
    check_table(f"the parameters on single data sets of the method {m.name!r}", m.on)
    for name, params in m.on.items():
        check_table(f"the parameters on {name!r} of the method {m.name!r}", params)
    try:
        json.dumps([m.params, m.on])
    except TypeError as error:
        raise DataError(f"{m.name}: parameters must be plain numbers, strings, lists or tables: {error}") from error


def _check_draw(draw: str, datasets: Sequence[DatasetEntry]) -> None:
    if draw not in ("once", "per-split"):
        raise DataError(f"draw={draw!r} is not known; use 'once' or 'per-split'")
    for d in datasets if draw == "per-split" else ():
        if d.is_file:
            raise DataError(f"draw='per-split' draws bags anew, but those of the file {d.load} are what they are")
        if "seed" in d.options:
            raise DataError(f"draw='per-split' takes the seed of the bags from the split; leave it out of {d.label!r}")


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
