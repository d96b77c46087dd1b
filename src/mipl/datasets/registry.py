"""The table of data sets: one line each, imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from mipl.errors import DataError

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset

__all__ = ["builder", "builder_path", "dataset_names"]

#: name -> "module:function"; the function takes its own keyword options, of which r and seed are common ones.
_DATASETS = {
    "digits": "mipl.datasets.digits:build",
    "mnist": "mipl.datasets.mnist:build",
    "fmnist": "mipl.datasets.fmnist:build",
    "newsgroups": "mipl.datasets.newsgroups:build",
    "birdsong": "mipl.datasets.birdsong:build",
    "sival": "mipl.datasets.sival:build",
    "cifar10h": "mipl.datasets.cifar10h:build",
    "birdsong-natural": "mipl.datasets.birdsong_natural:build",
}


def dataset_names() -> tuple[str, ...]:
    """The names that `mipl.load` knows."""
    return tuple(_DATASETS)


def builder_path(name: str) -> str:
    """Where the builder of a data set lives, ``"module:function"``, without importing it."""
    return _DATASETS[name]


def builder(name: str) -> Callable[..., MIPLDataset]:
    """The function that builds the data set `name`."""
    if name not in _DATASETS:
        raise DataError(f"unknown data set {name!r}; the data sets are {', '.join(_DATASETS)}")
    module, _, function = _DATASETS[name].partition(":")
    build: Callable[..., MIPLDataset] = getattr(import_module(module), function)
    return build
