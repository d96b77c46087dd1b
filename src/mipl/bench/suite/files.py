"""Suites as files: those of the package by name, a user's as TOML or YAML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from mipl.bench.suite.entries import check_fields, method_entries
from mipl.bench.suite.suite import Suite
from mipl.datasets.registry import dataset_names
from mipl.errors import DataError, UnavailableError
from mipl.io.border import border
from mipl.registry import methods

__all__ = ["load_suite", "suite_names"]


def suite_names() -> list[str]:
    """The names of the suites that come with the package."""
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


def load_suite(source: str | Path, notify: Callable[[str], None] = lambda message: None) -> Suite:
    """Read a suite that comes with the package by its name, or a user's from a .toml or .yaml file.

    A suite of the package may name methods and data sets that this installation lacks: they are left out, and
    `notify` is told. In a user's file an unknown name is an error.

    Parameters
    ----------
    source : str or Path
        A name of `suite_names()`, or a file.
    notify : callable, default=ignore
        Called with each sentence about what was left out.
    """
    if str(source) in suite_names():
        text = (_folder() / f"{source}.toml").read_text(encoding="utf-8")
        return _available(tomllib.loads(text), str(source), notify)
    path = Path(source)
    if path.suffix not in (".toml", ".yaml", ".yml"):
        raise DataError(f"{str(source)!r} is neither a suite ({', '.join(suite_names())}) nor a .toml or .yaml file")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read the suite {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"the suite {path} is not UTF-8: {error}") from error
    with border(str(path), "a suite"):
        content = _parse(path, text)
        check_fields("suite", content, Suite, str(path))
        for key in ("methods", "datasets"):
            if not isinstance(content.get(key), list):
                raise DataError(f"{path}: a suite needs a list of {key}, such as {key} = [...]")
        return Suite(**{"name": path.stem, **content})


def _folder() -> Any:
    return resources.files("mipl.bench") / "suites"


def _parse(path: Path, text: str) -> dict[str, Any]:
    if path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{path} is not valid TOML: {error}") from error
    try:
        import yaml
    except ImportError as error:
        raise UnavailableError(
            f"reading {path} needs PyYAML (pip install pyyaml); a .toml suite needs nothing"
        ) from error
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a mapping with the keys methods and datasets")
    return content


def _available(content: dict[str, Any], name: str, notify: Callable[[str], None]) -> Suite:
    """Make a suite of what this installation has."""
    entries = [m for spec in content["methods"] for m in method_entries(spec)]
    missing = list(dict.fromkeys(m.method for m in entries if m.method not in methods()))
    names = [d if isinstance(d, str) else d["load"] for d in content["datasets"]]
    datasets = [d for d, n in zip(content["datasets"], names, strict=True) if n in dataset_names()]
    left_out = [*missing, *(n for n in names if n not in dataset_names())]
    if left_out:
        notify(f"suite {name}: left out, not in this installation: {', '.join(left_out)}")
    kept = [m for m in entries if m.method not in missing]
    if not kept or not datasets:
        raise DataError(f"suite {name}: none of its {'methods' if not kept else 'data sets'} is in this installation")
    if content["reference"] not in [m.name for m in kept]:
        notify(f"suite {name}: the reference {content['reference']} is left out; {kept[0].name} takes its place")
        content["reference"] = kept[0].name
    absent = [m for m in entries if m.method in missing]
    return Suite(**{"name": name, **content, "methods": kept, "datasets": datasets, "absent": absent})
