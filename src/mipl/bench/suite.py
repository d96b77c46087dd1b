"""Suites: which methods run on which data sets, written down in a small file."""

from __future__ import annotations

import hashlib
import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from mipl.bench.cell import Cell
from mipl.bench.code_version import code_version
from mipl.datasets.registry import builder_path, dataset_names
from mipl.errors import DataError
from mipl.registry import class_path
from mipl.registry import methods as known_methods

__all__ = ["DatasetEntry", "MethodEntry", "Place", "Suite", "load_suite", "suite_names"]


@dataclass(frozen=True)
class MethodEntry:
    """A method of a suite.

    Parameters
    ----------
    method : str
        A name of `mipl.methods()`, or the import path ``"package.module:Class"`` of any class with ``fit(bags,
        candidates)`` and ``predict(bags)``.
    label : str
        Name in tables; default the method's.
    group : str
        Heading under which tables list it, as the paper's "Mean" and "MaxMin".
    params : dict
    on : dict
        Parameters that differ on one data set, by what it loads: ``{"mnist": {"n_iter": 500}}``.
    """

    method: str
    label: str = ""
    group: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    on: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The label with its group: unique in a suite."""
        return f"{self.label} ({self.group})" if self.group else self.label


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of a suite: a name or file for `mipl.load`, its name in tables, and the builder's options.

    `r` overrides the suite's values; a file has its own candidate sets, and its `r` only says how many there are.
    """

    load: str
    label: str = ""
    r: tuple[int | None, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether this is a file, not a data set that `mipl.load` builds by name."""
        return self.load not in dataset_names()


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

    Examples
    --------
    >>> suite = Suite(methods=["PL-kNN", {"method": "PL-kNN", "label": "one neighbour", "params": {"k": 1}}],
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

    def __post_init__(self) -> None:
        methods = tuple(entry for spec in self.methods for entry in _methods(spec))
        datasets = tuple(_dataset(spec) for spec in self.datasets)
        if not methods or not datasets:
            raise DataError("a suite needs at least one method and one data set")
        for m in methods:
            if m.method not in known_methods() and ":" not in m.method:
                raise DataError(
                    f'unknown method {m.method!r}; name one of {", ".join(known_methods())} or a "module:Class"'
                )
            try:
                json.dumps([m.params, m.on])
            except TypeError as error:
                raise DataError(
                    f"{m.name}: parameters must be plain numbers, strings, lists or tables: {error}"
                ) from error
        _check_unique("method", [m.name for m in methods])
        _check_unique("data set", [d.label for d in datasets])
        if not isinstance(self.splits, int) or self.splits < 1:
            raise DataError(f"splits={self.splits!r} must be a positive integer")
        if not 0 < self.train_size < 1:
            raise DataError(f"train_size={self.train_size!r} must lie between 0 and 1")
        if any(not isinstance(r, int) or r < 0 for r in self.r):
            raise DataError(f"r={list(self.r)!r} must be integers of at least 0")
        reference = self.reference or methods[0].name
        if reference not in [m.name for m in methods]:
            raise DataError(f"the reference {reference!r} is none of the methods {', '.join(m.name for m in methods)}")
        for name, value in {
            "methods": methods,
            "datasets": datasets,
            "r": tuple(self.r),
            "reference": reference,
        }.items():
            object.__setattr__(self, name, value)

    def cells(self) -> dict[Place, Cell]:
        """All cells by their place in the tables.

        They come data set by data set and split by split, so that a worker that takes them in order loads each of
        these once.
        """
        options = {d.label: _options(d) for d in self.datasets}
        codes = {(d.label, m.name): _code(m, d) for d in self.datasets for m in self.methods}
        return {
            Place(d.label, r, split, m.name): Cell(
                dataset=d.load,
                r=None if d.is_file else r,
                method=m.method,
                split=split,
                train_size=self.train_size,
                options=options[d.label],
                params={**m.params, **m.on.get(d.load, {})},
                code=codes[d.label, m.name],
            )
            for d in self.datasets
            for r in (d.r or ((None,) if d.is_file else self.r))
            for split in range(self.splits)
            for m in self.methods
        }

    def select(
        self, *, methods: Iterable[str] = (), datasets: Iterable[str] = (), r: Iterable[int] = (), **changes: Any
    ) -> Suite:
        """Return the part of the suite that is named, with `changes` of `splits`, `train_size` or `reference`.

        A method is named as in tables, with or without its group; what is left empty stays whole.
        """
        wanted = set(r)
        kept = _chosen("method", methods, self.methods, lambda m: (m.name, m.label))
        names = [m.name for m in kept]
        changes.setdefault("reference", self.reference if self.reference in names else names[0])
        entries = _chosen("data set", datasets, self.datasets, lambda d: (d.label, d.load))
        if wanted:
            own = {d.label: tuple(value for value in d.r if value in wanted) for d in entries}
            entries = [replace(d, r=own[d.label]) for d in entries if own[d.label] or not d.r]
            changes["r"] = tuple(sorted(wanted))
        return replace(self, methods=kept, datasets=entries, **changes)


class Place(NamedTuple):
    """Where a cell stands in the tables of a suite, by the labels of its data set and method."""

    dataset: str
    r: int | None
    split: int
    method: str


def suite_names() -> list[str]:
    """The names of the suites that come with the package."""
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


def load_suite(source: str | Path, notify: Callable[[str], None] = lambda message: None) -> Suite:
    """Read a suite that comes with the package by its name, or a user's from a .toml or .yaml file.

    A suite of the package may name methods and data sets that this installation lacks: they are left out, and
    `notify` is told. In a user's file an unknown name is an error.
    """
    if str(source) in suite_names():
        text = (_folder() / f"{source}.toml").read_text(encoding="utf-8")
        return _available(tomllib.loads(text), str(source), notify)
    path = Path(source)
    if path.suffix not in (".toml", ".yaml", ".yml"):
        raise DataError(f"{str(source)!r} is neither a suite ({', '.join(suite_names())}) nor a .toml or .yaml file")
    try:
        content = _parse(path)
    except OSError as error:
        raise DataError(f"cannot read the suite {path}: {error.strerror}") from error
    _check_fields("suite", content, Suite, str(path))
    return Suite(**{"name": path.stem, **content})


# -------------------------------------------------------------------- reading


def _folder() -> Any:
    return resources.files("mipl.bench") / "suites"


def _parse(path: Path) -> dict[str, Any]:
    if path.suffix == ".toml":
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is not valid TOML: {error}") from error
    try:
        import yaml
    except ImportError as error:
        raise DataError(f"reading {path} needs PyYAML (pip install pyyaml); a .toml suite needs nothing") from error
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a mapping with the keys methods and datasets")
    return content


def _available(content: dict[str, Any], name: str, notify: Callable[[str], None]) -> Suite:
    """Make a suite of what this installation has."""
    methods = [m for spec in content["methods"] for m in _methods(spec)]
    missing = list(dict.fromkeys(m.method for m in methods if m.method not in known_methods()))
    names = [d if isinstance(d, str) else d["load"] for d in content["datasets"]]
    datasets = [d for d, n in zip(content["datasets"], names, strict=True) if n in dataset_names()]
    left_out = [*missing, *(n for n in names if n not in dataset_names())]
    if left_out:
        notify(f"suite {name}: left out, not in this installation: {', '.join(left_out)}")
    kept = [m for m in methods if m.method not in missing]
    if not kept or not datasets:
        raise DataError(f"suite {name}: none of its {'methods' if not kept else 'data sets'} is in this installation")
    if content["reference"] not in [m.name for m in kept]:
        notify(f"suite {name}: the reference {content['reference']} is left out; {kept[0].name} takes its place")
        content["reference"] = kept[0].name
    return Suite(**{"name": name, **content, "methods": kept, "datasets": datasets})


def _methods(spec: Any) -> list[MethodEntry]:
    if isinstance(spec, MethodEntry):
        return [replace(spec, label=spec.label or spec.method.rpartition(":")[2])]
    if isinstance(spec, str):
        return _methods(MethodEntry(spec))
    if isinstance(spec, Mapping):
        _check_fields("method", spec, MethodEntry, "the suite")
        if "method" not in spec:
            raise DataError(f"a method of the suite does not say its method: {dict(spec)}")
        names = [spec["method"]] if isinstance(spec["method"], str) else spec["method"]
        return [entry for name in names for entry in _methods(MethodEntry(**{**spec, "method": name}))]
    if hasattr(spec, "get_params") and not isinstance(spec, type):
        cls = type(spec)
        if cls.__module__ == "__main__":
            raise DataError(
                f"{cls.__name__} is defined in a script; workers import it, so put it in a module of its own"
            )
        default = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
        changed = {name: value for name, value in spec.get_params(deep=False).items() if value is not default.get(name)}
        return _methods(MethodEntry(f"{cls.__module__}:{cls.__qualname__}", params=changed))
    raise DataError(f"a method of a suite is a name, a table or an estimator, not {spec!r}")


def _dataset(spec: Any) -> DatasetEntry:
    if isinstance(spec, str | Path):
        spec = DatasetEntry(str(spec))
    elif isinstance(spec, Mapping):
        _check_fields("data set", spec, DatasetEntry, "the suite")
        if "load" not in spec:
            raise DataError(f"a data set of the suite does not say what to load: {dict(spec)}")
        r = spec.get("r", ())
        spec = DatasetEntry(**{**spec, "load": str(spec["load"]), "r": tuple(r) if isinstance(r, Sequence) else (r,)})
    if not isinstance(spec, DatasetEntry):
        raise DataError(f"a data set of a suite is a name, a path or a table, not {spec!r}")
    if spec.is_file and not Path(spec.load).is_file():
        raise DataError(f"{spec.load!r} is neither a data set ({', '.join(dataset_names())}) nor a file")
    return replace(spec, label=spec.label or (Path(spec.load).stem if spec.is_file else spec.load))


def _check_fields(what: str, given: Mapping[str, Any], cls: type, where: str) -> None:
    known = [f.name for f in fields(cls)]
    for name in given:
        if name not in known:
            raise DataError(f"{where}: a {what} has no key {name!r}; it has {', '.join(known)}")


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
    paths = [class_path(method.method) if method.method in known_methods() else method.method]
    if not dataset.is_file:
        paths.append(builder_path(dataset.load))
    return code_version(*(path.partition(":")[0] for path in paths))
