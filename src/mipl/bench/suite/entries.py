"""What a suite says of a method and of a data set."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mipl.datasets.registry import dataset_names
from mipl.datasets.scaling import SCALINGS
from mipl.errors import DataError
from mipl.registry import describe

__all__ = [
    "DatasetEntry",
    "MethodEntry",
    "check_fields",
    "check_table",
    "check_train_size",
    "dataset_entry",
    "method_entries",
]


@dataclass(frozen=True)
class MethodEntry:
    """A method of a suite.

    Parameters
    ----------
    method : str
        A name of `mipl.methods()`, or the import path ``"package.module:Class"`` of any class with ``fit(bags,
        candidates)`` and ``predict(bags)``.
    label : str, default=""
        Name in tables; "" for the method's.
    group : str, default=""
        Heading under which tables list it, as the paper's "Mean" and "MaxMin".
    params : dict, default={}
        Parameters of the method.
    on : dict, default={}
        Parameters that differ on one data set, by what it loads: ``{"mnist": {"max_iter": 500}}``.
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
    """A data set of a suite.

    Parameters
    ----------
    load : str
        A name or file for `mipl.load`.
    label : str, default=""
        Name in tables; "" for that of the data set or file.
    r : tuple of int, default=()
        Numbers of false positive labels; () for the suite's. A file has its own candidate sets, and its `r` only says
        how many there are.
    options : dict, default={}
        Options of the data set's builder.
    scale : {"", "min-max", "z-scores"}, default=""
        "min-max" maps the range of each feature over the training bags to [0, 1], "z-scores" gives it mean 0 and
        standard deviation 1, for every method alike.
    train_size : float or None, default=None
        Share of training bags; None for the suite's.
    """

    load: str
    label: str = ""
    r: tuple[int | None, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    scale: str = ""
    train_size: float | None = None

    @property
    def is_file(self) -> bool:
        """Whether this is a file, not a data set that `mipl.load` builds by name."""
        return self.load not in dataset_names()


def method_entries(spec: Any) -> list[MethodEntry]:
    """Read what a suite may say of a method; a list of names gives an entry for each."""
    if isinstance(spec, MethodEntry):
        return [replace(spec, label=spec.label or spec.method.rpartition(":")[2])]
    if isinstance(spec, str):
        return method_entries(MethodEntry(spec))
    if isinstance(spec, Mapping):
        check_fields("method", spec, MethodEntry, "the suite")
        if "method" not in spec:
            raise DataError(f"a method of the suite does not say its method: {dict(spec)}")
        names = [spec["method"]] if isinstance(spec["method"], str) else spec["method"]
        return [entry for name in names for entry in method_entries(MethodEntry(**{**spec, "method": name}))]
    if hasattr(spec, "get_params") and not isinstance(spec, type):
        known = describe(spec)
        if known is not None:
            return method_entries(MethodEntry(known[0], params=known[1]))
        cls = type(spec)
        if cls.__module__ == "__main__":
            raise DataError(
                f"{cls.__name__} is defined in a script; workers import it, so put it in a module of its own"
            )
        default = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
        changed = {name: value for name, value in spec.get_params(deep=False).items() if value is not default.get(name)}
        return method_entries(MethodEntry(f"{cls.__module__}:{cls.__qualname__}", params=changed))
    raise DataError(f"a method of a suite is a name, a table or an estimator, not {spec!r}")


def dataset_entry(spec: Any) -> DatasetEntry:
    """Read what a suite may say of a data set."""
    if isinstance(spec, str | Path):
        spec = DatasetEntry(str(spec))
    elif isinstance(spec, Mapping):
        check_fields("data set", spec, DatasetEntry, "the suite")
        if "load" not in spec:
            raise DataError(f"a data set of the suite does not say what to load: {dict(spec)}")
        r = spec.get("r", ())
        spec = DatasetEntry(**{**spec, "load": str(spec["load"]), "r": tuple(r) if isinstance(r, Sequence) else (r,)})
    if not isinstance(spec, DatasetEntry):
        raise DataError(f"a data set of a suite is a name, a path or a table, not {spec!r}")
    if spec.scale not in ("", *SCALINGS):
        known = " or ".join(map(repr, SCALINGS))
        raise DataError(
            f"scale = {spec.scale!r} of the data set {spec.load!r} is not known; use {known}, or leave it out"
        )
    check_table(f"the options of the data set {spec.load!r}", spec.options)
    if spec.train_size is not None:
        check_train_size(spec.train_size)
    if any("\ud800" <= character <= "\udfff" for character in spec.load):
        raise DataError(f"the name of the file {spec.load!r} is not valid UTF-8, and a store keeps it; rename the file")
    if spec.is_file and not Path(spec.load).is_file():
        raise DataError(f"{spec.load!r} is neither a data set ({', '.join(dataset_names())}) nor a file")
    return replace(spec, label=spec.label or (Path(spec.load).stem if spec.is_file else spec.load))


def check_train_size(value: float) -> None:
    """Refuse a share of training bags that leaves one side empty."""
    if not 0 < value < 1:
        raise DataError(f"train_size={value!r} must lie between 0 and 1")


def check_table(what: str, given: Any) -> None:
    """Refuse what is no table of names and values."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise DataError(f"{what} are {given!r}; write names and values, such as {{ k = 5 }}")


def check_fields(what: str, given: Mapping[str, Any], cls: type, where: str) -> None:
    """Refuse a key that the class does not have."""
    known = [f.name for f in fields(cls)]
    for name in given:
        if name not in known:
            raise DataError(f"{where}: a {what} has no key {name!r}; it has {', '.join(known)}")
