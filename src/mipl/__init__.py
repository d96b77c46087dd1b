"""mipl: learning from bags of instances with ambiguous labels (multi-instance partial-label learning).

The public names below are imported when they are first used, so that ``import mipl`` and ``mipl --help`` stay fast.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# A library leaves it to the program what becomes of its log.
logging.getLogger("mipl").addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from mipl.baggp.estimator import BagGP
    from mipl.bags import Bags
    from mipl.base import MIPLClassifier
    from mipl.checking import check
    from mipl.citing import cite
    from mipl.dataset import MIPLDataset
    from mipl.errors import DataError, MIPLError, ParameterError, UnavailableError
    from mipl.loading import load
    from mipl.miplgp.estimator import MIPLGP
    from mipl.persistence import load_model
    from mipl.pipeline import BagPipeline, make_pipeline
    from mipl.registry import make, methods
    from mipl.resolution import Resolution
    from mipl.resolving import explain, resolve
    from mipl.scanning.scan import Scan, scan
    from mipl.scoring import label_free_score
    from mipl.transform import BagTransformer

_EXPORTS = {
    "BagGP": "mipl.baggp.estimator",
    "BagPipeline": "mipl.pipeline",
    "BagTransformer": "mipl.transform",
    "Bags": "mipl.bags",
    "DataError": "mipl.errors",
    "MIPLError": "mipl.errors",
    "ParameterError": "mipl.errors",
    "UnavailableError": "mipl.errors",
    "MIPLGP": "mipl.miplgp.estimator",
    "MIPLClassifier": "mipl.base",
    "MIPLDataset": "mipl.dataset",
    "Resolution": "mipl.resolution",
    "Scan": "mipl.scanning.scan",
    "check": "mipl.checking",
    "cite": "mipl.citing",
    "explain": "mipl.resolving",
    "label_free_score": "mipl.scoring",
    "load": "mipl.loading",
    "load_model": "mipl.persistence",
    "make": "mipl.registry",
    "make_pipeline": "mipl.pipeline",
    "methods": "mipl.registry",
    "resolve": "mipl.resolving",
    "scan": "mipl.scanning.scan",
}
_SUBMODULES = ("bench", "checks", "datasets", "deep", "features", "gp", "io", "mil", "pll", "report", "scoring")

__all__ = [
    "MIPLGP",
    "BagGP",
    "BagPipeline",
    "BagTransformer",
    "Bags",
    "DataError",
    "MIPLClassifier",
    "MIPLDataset",
    "MIPLError",
    "ParameterError",
    "Resolution",
    "Scan",
    "UnavailableError",
    "__version__",
    "check",
    "cite",
    "explain",
    "label_free_score",
    "load",
    "load_model",
    "make",
    "make_pipeline",
    "methods",
    "resolve",
    "scan",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    if name in _SUBMODULES:
        return import_module(f"mipl.{name}")
    raise AttributeError(f"module 'mipl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
