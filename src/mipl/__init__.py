"""mipl: learning from bags of instances with ambiguous labels (multi-instance partial-label learning).

The public names below are imported when they are first used, so that ``import mipl`` and ``mipl --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mipl.baggp import BagGP
    from mipl.bags import Bags
    from mipl.base import MIPLClassifier
    from mipl.dataset import MIPLDataset
    from mipl.errors import DataError
    from mipl.label_free import label_free_score
    from mipl.loading import load
    from mipl.miplgp import MIPLGP
    from mipl.model_file import load_model
    from mipl.registry import make, methods

_EXPORTS = {
    "BagGP": "mipl.baggp",
    "Bags": "mipl.bags",
    "DataError": "mipl.errors",
    "MIPLGP": "mipl.miplgp",
    "MIPLClassifier": "mipl.base",
    "MIPLDataset": "mipl.dataset",
    "label_free_score": "mipl.label_free",
    "load": "mipl.loading",
    "load_model": "mipl.model_file",
    "make": "mipl.registry",
    "methods": "mipl.registry",
}
_SUBMODULES = ("bench", "checks", "datasets", "features", "gp", "io", "mil", "pll")

__all__ = [
    "MIPLGP",
    "BagGP",
    "Bags",
    "DataError",
    "MIPLClassifier",
    "MIPLDataset",
    "__version__",
    "label_free_score",
    "load",
    "load_model",
    "make",
    "methods",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    if name in _SUBMODULES:
        return import_module(f"mipl.{name}")
    raise AttributeError(f"module 'mipl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
